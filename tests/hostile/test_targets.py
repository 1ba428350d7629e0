"""What is fed by `scripts/fuzz` is sound on what it begins with, and on what once was a fault."""

import pytest
from tests.hostile.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_begins_with_is_no_fault(name: str) -> None:
    for begin in TARGETS[name].begin:
        TARGETS[name].feed(begin)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("protobuf", b"\x03\x0dM\x0d", id="a-time-whose-seconds-are-bytes"),
        pytest.param("review", b"\x15\x09I\x15\x09I", id="a-time-whose-nanoseconds-are-bytes"),
    ],
)
def test_what_was_found_is_no_fault_any_more(name: str, data: bytes) -> None:
    TARGETS[name].feed(data)
