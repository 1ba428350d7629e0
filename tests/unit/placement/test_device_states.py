"""What comes of a state of devices, beside taking it from a list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.placement import device_states
from muster.placement.device_states import NO_ROOM, UNKNOWN, DeviceStates

WAYS = ((1, 1000), (1, 300), (2, 1000), (1, 470))


def make_states() -> DeviceStates:
    return DeviceStates(
        np.array([devices for devices, _ in WAYS], dtype=np.int32),
        np.array([milli for _, milli in WAYS], dtype=np.int32),
    )


def number(states: DeviceStates, *left: int) -> int:
    return int(states.numbers(np.array([left], dtype=np.int32))[0])


def taken(left: list[int], devices: int, milli: int) -> list[int] | None:
    """The fullest devices with room give it; None if there are too few."""
    roomy = sorted(index for index, each in enumerate(left) if each >= milli)
    chosen = sorted(roomy, key=lambda index: left[index])[:devices]
    if len(chosen) < devices:
        return None
    return sorted(each - milli if index in chosen else each for index, each in enumerate(left))


@given(st.lists(st.integers(0, 1000) | st.just(1000), min_size=3, max_size=3), st.integers(0, len(WAYS) - 1))
def test_what_is_learned_agrees_with_taking_it_from_a_list(left: list[int], way: int) -> None:
    states = make_states()
    before = number(states, *left)
    assert states.after[before, way] == UNKNOWN
    states.learn(np.array([before, before]), np.array([way, way]))
    expected = taken(left, *WAYS[way])
    found = int(states.after[before, way])
    if expected is None:
        assert found == NO_ROOM
    else:
        assert found == number(states, *expected)
        assert states.left[found] == sum(expected)


def test_which_device_it_is_does_not_matter_and_less_than_nothing_is_nothing() -> None:
    states = make_states()
    assert number(states, 1000, 300, 0) == number(states, -20, 1000, 300)
    assert number(states, 1000, 300, 0) != number(states, 1000, 300, 1)


def test_states_are_forgotten_when_there_are_too_many_or_nodes_have_more_devices(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    states = make_states()
    monkeypatch.setattr(device_states, "STATES_MAX", 2)
    for left in (1, 2, 3):
        assert number(states, left, 0) == left - 1
    assert number(states, 4, 0) == 0
    assert number(states, 5, 0, 0) == 0
    assert states.left[0] == 5
