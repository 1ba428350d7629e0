"""Devices in parts: the slow checker's arithmetic, the judge, and Muster against them."""

import pytest
from msgspec.structs import replace
from tests.differential.claims.batch import play_alone
from tests.differential.claims.draw_parts import draw_parts
from tests.differential.claims.judge import judge_alone
from tests.differential.claims.parts import Given, Parts, share_of
from tests.differential.claims.rules import State, takes
from tests.differential.claims.scenario import ClaimScenario, Short
from tests.differential.test_claims import played, scenario

VALUES = {"memory": 20, "shared": True, "policy": {"memory": {"values": [2, 5, 9], "default": 5}}}
RANGE = {"memory": 20, "shared": True, "policy": {"memory": {"min": 2, "step": 3, "max": 11, "default": 5}}}
DEVICES = [("a.test", "n0", f"d{index}") for index in range(2)]


@pytest.mark.parametrize(
    ("device", "needs", "share"),
    [
        pytest.param({"memory": 20}, {}, 20, id="all-of-it"),
        pytest.param({"memory": 20}, {"memory": 7}, 7, id="what-is-asked-for"),
        pytest.param({"memory": 20}, {"memory": 21}, None, id="more-than-there-is"),
        pytest.param({"memory": 20}, {"lanes": 1}, None, id="a-capacity-it-lacks"),
        pytest.param(VALUES, {}, 5, id="the-default"),
        pytest.param(VALUES, {"memory": 6}, 9, id="the-next-value"),
        pytest.param(VALUES, {"memory": 10}, None, id="beyond-the-values"),
        pytest.param(RANGE, {"memory": 1}, 2, id="the-least"),
        pytest.param(RANGE, {"memory": 6}, 8, id="the-next-step"),
        pytest.param(RANGE, {"memory": 12}, None, id="beyond-the-range"),
    ],
)
def test_a_share_is_rounded_up_as_the_device_says(device: Short, needs: Short, share: int | None) -> None:
    assert share_of(device, needs) == (None if share is None else (("memory", share),))


def cut(total: int, amounts: tuple[int, int], *, counters: str = "g0", of: int = 2) -> ClaimScenario:
    """Two devices of n0 cut out of one counter."""
    plain = scenario()
    (short,) = plain.slices
    devices = [
        device | {"cut": {"g0": {"cores": amount}}}
        for device, amount in zip(short["devices"], amounts, strict=True)
    ]
    beside = {**short, "slice": "s", "of": of, "devices": [], "counters": {counters: {"cores": total}}}
    return replace(plain, slices=[{**short, "of": of, "devices": devices}, beside])


def test_counters_are_enough_for_one_device_or_for_both() -> None:
    given = [Given("r0", device) for device in DEVICES]
    assert Parts(cut(4, (2, 2))).are_enough(given)
    assert not Parts(cut(3, (2, 2))).are_enough(given)
    assert Parts(cut(3, (2, 2))).are_enough(given[:1])


def test_a_device_is_not_had_where_its_counter_is_used_up_or_unknown() -> None:
    before = State({}, {"k9": [Given("r0", DEVICES[0])]})
    pod = scenario().pods[0]
    assert takes(cut(4, (2, 2)), before, pod, "n0")
    assert not takes(cut(3, (2, 2)), before, pod, "n0")
    assert not takes(cut(4, (2, 2), counters="g1"), State(), pod, "n0")
    assert not takes(cut(4, (2, 2), of=3), State(), pod, "n0")


def shared(*needs: int) -> ClaimScenario:
    """One device of 20 Gi on n0, of which several may have shares, and a pod with a claim for each need."""
    plain = scenario()
    (short,) = plain.slices
    claims = [
        {
            "claim": f"k{index}",
            "requests": [{"name": "r0", "class": "dev", "count": 1, "needs": {"memory": each}}],
        }
        for index, each in enumerate(needs)
    ]
    pod = {"pod": "x0", "cpu": 1, "claims": [claim["claim"] for claim in claims]}
    slices = [{**short, "devices": [short["devices"][0] | {"shared": True}]}]
    return replace(plain, slices=slices, claims=claims, pods=[pod])


def had(*shares: int | None) -> State:
    given = [Given("r0", DEVICES[0], share=None if each is None else (("memory", each),)) for each in shares]
    return State({"x0": "n0"}, {f"k{index}": [each] for index, each in enumerate(given)})


def test_claims_have_shares_of_one_device_as_far_as_it_goes() -> None:
    assert judge_alone(shared(12, 8), played(had(12, 8))) == []
    assert judge_alone(shared(12, 9), played(State())) == []
    (finding,) = judge_alone(shared(12, 9), played(had(12, 9)))
    assert "no node could take it" in finding.text


@pytest.mark.parametrize("share", [None, 11])
def test_a_wrong_share_is_found(share: int | None) -> None:
    (finding, *_) = judge_alone(shared(12), played(had(share)))
    assert "(('memory', 12),) would be right" in finding.text


def test_more_than_there_is_is_found_whoever_has_it() -> None:
    late = replace(had(12), allocated={**had(12).allocated, "k9": [Given("r0", DEVICES[1])]})
    texts = [finding.text for finding in judge_alone(cut(3, (2, 2)), played(late))]
    assert any("more has been given away than there is" in text for text in texts)


def test_two_requests_of_a_claim_may_share_a_device_and_one_request_may_not() -> None:
    request = {"class": "dev", "count": 1, "needs": {"memory": 5}}
    two = [{"claim": "k0", "requests": [request | {"name": name} for name in ("r0", "r1")]}]
    twice = [{"claim": "k0", "requests": [request | {"name": "r0", "count": 2}]}]
    plain = replace(shared(5), pods=[{"pod": "x0", "cpu": 1, "claims": ["k0"]}])
    assert takes(replace(plain, claims=two), State(), plain.pods[0], "n0")
    assert not takes(replace(plain, claims=twice), State(), plain.pods[0], "n0")


def test_a_seed_of_parts_is_always_the_same_and_never_for_administration() -> None:
    assert draw_parts(7) == draw_parts(7)
    drawn = str([draw_parts(seed) for seed in range(40)])
    assert "'admin'" not in drawn
    assert all(word in drawn for word in ("'cut'", "'counters'", "'shared'", "'policy'", "'needs'"))


@pytest.mark.parametrize("seed", range(1, 26))
def test_muster_gives_out_parts_as_trying_everything_would(seed: int) -> None:
    assert play_alone(seed, "parts").findings == []
