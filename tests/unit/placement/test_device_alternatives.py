"""How early the alternatives are that claims get."""

import pytest
from msgspec.structs import replace
from tests.unit.cluster.device_objects import make_claim, make_request

from muster.api.devices import Request
from muster.placement.device_alternatives import have_alternatives, preference


def choice(name: str, *alternatives: str) -> Request:
    """A request with these alternatives."""
    exactly = make_request().exactly
    assert exactly is not None
    return Request(name, first_available=[replace(exactly, name=each) for each in alternatives])


@pytest.mark.parametrize(
    ("met", "score"),
    [
        pytest.param(["r/a", "r/a", "s"], 100, id="the-first"),
        pytest.param(["r/b", "s"], 50, id="the-middle"),
        pytest.param(["r/c", "s"], 0, id="the-last"),
        pytest.param(["s"], 0, id="nothing"),
    ],
)
def test_the_earlier_the_better(met: list[str], score: float) -> None:
    claims = [make_claim("c", choice("r", "a", "b", "c"), make_request("s"), choice("only", "x"))]
    assert preference(claims, [met]) == score


def test_every_request_with_a_choice_counts_alike() -> None:
    claims = [make_claim("c", choice("r", "a", "b")), make_claim("d", choice("r", "a", "b"))]
    assert preference(claims, [["r/a"], ["r/b"]]) == 50


def test_one_alternative_is_no_choice() -> None:
    assert have_alternatives([make_claim("c"), make_claim("d", choice("r", "a", "b"))])
    assert not have_alternatives([make_claim("c"), make_claim("d", choice("r", "a"))])
    assert preference([make_claim("c")], [["r"]]) == 0
