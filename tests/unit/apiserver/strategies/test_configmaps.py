"""Config maps."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import MAPS, FullServer


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        pytest.param({"data": {"..": "x"}}, "data[..]: Invalid value: \"..\": must not be '..'", id="key"),
        pytest.param(
            {"data": {"a": "c"}, "binaryData": {"a": "YQ=="}},
            'data[a]: Invalid value: "a": duplicate of key present in binaryData',
            id="a key twice",
        ),
        pytest.param(
            {"data": {"a": "x" * (1024 * 1024 + 1)}},
            "[]: Too long: may not be more than 1048576 bytes",
            id="too large",
        ),
    ],
)
def test_a_bad_map_is_refused(body: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(MAPS, **body) == [fault]


def test_an_immutable_map_stays_as_it_is() -> None:
    server = FullServer()
    server.create(MAPS, "m", data={"a": "1"}, immutable=True)
    why = "Forbidden: field is immutable when `immutable` is set"
    assert server.change_faults(MAPS, "m", data={"a": "2"}) == [f"data: {why}"]
    assert server.change_faults(MAPS, "m", immutable=False) == [f"immutable: {why}"]
    server.change(MAPS, "m", metadata={"labels": {"a": "b"}})


def test_bytes_that_are_null_count_as_none() -> None:
    server = FullServer()
    server.create(MAPS, "m", binaryData={"b": None})
    assert server.table(MAPS) == [["m", 1, "0s"]]


def test_the_table_counts_keys() -> None:
    server = FullServer()
    server.create(MAPS, "m", data={"a": "1"}, binaryData={"b": "YQ=="})
    assert server.table(MAPS) == [["m", 2, "0s"]]
