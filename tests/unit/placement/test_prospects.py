"""What will be wasted of a node's GPUs, beside a slow and obvious twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.placement.prospects import (
    LENGTH,
    SEQUENCES,
    Typical,
    TypicalShape,
    draw_sequences,
    expect_waste,
)

SHAPES = (
    TypicalShape(4000, 1, 1000, 50.0),
    TypicalShape(2000, 1, 470, 30.0),
    TypicalShape(1000, 1, 810, 15.0),
    TypicalShape(8000, 4, 1000, 5.0),
)
TYPICAL = Typical(SHAPES)


def slow_waste(cpu: int, left: list[int], is_open: list[bool]) -> float:
    """One sequence, one pod, one device after another."""
    wasted = []
    for sequence in TYPICAL.sequences.tolist():
        slots, cpu_left = [max(0, each) for each in left], cpu
        for index in sequence:
            shape = SHAPES[index]
            room = sorted((each, device) for device, each in enumerate(slots) if each >= shape.milli)
            if is_open[index] and cpu_left >= shape.cpu_milli and len(room) >= shape.devices:
                cpu_left -= shape.cpu_milli
                for _, device in room[: shape.devices]:
                    slots[device] -= shape.milli
        wasted.append(sum(slots))
    return float(np.mean(wasted))


@settings(max_examples=60)
@given(
    st.integers(0, 30_000),
    st.lists(st.integers(-50, 1000) | st.just(1000), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_it_agrees_with_its_slow_twin(cpu: int, left: list[int], is_open: list[bool]) -> None:
    found = expect_waste(
        np.array([cpu], dtype=np.int64), np.array([left], dtype=np.int32), np.array([is_open]), TYPICAL
    )
    assert found[0] == pytest.approx(slow_waste(cpu, left, is_open))


def test_states_do_not_see_each_other() -> None:
    cpu = np.array([16_000, 3000, 0], dtype=np.int64)
    left = np.array([[1000, 1000], [530, 190], [1000, 0]], dtype=np.int32)
    is_open = np.ones((3, 4), dtype=np.bool_)
    together = expect_waste(cpu, left, is_open, TYPICAL)
    alone = [expect_waste(cpu[i : i + 1], left[i : i + 1], is_open[i : i + 1], TYPICAL)[0] for i in range(3)]
    assert together.tolist() == alone
    assert together[2] == 1000.0  # without CPU nothing of it is ever used


def test_every_shape_is_drawn_by_its_share() -> None:
    share = np.array([60.0, 30.0, 10.0])
    drawn = draw_sequences(share)
    assert drawn.shape == (SEQUENCES, LENGTH)
    found = np.bincount(drawn.ravel(), minlength=3) / drawn.size
    assert found == pytest.approx(share / 100.0, abs=0.02)
