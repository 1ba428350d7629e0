"""Sums over candidate placements that are kept from decision to decision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.placement.domain_totals import DomainTotals
from muster.placement.domains import Placements, partition
from muster.testing.builders import make_node, make_pod

NAMES = ("n0", "n1", "n2", "n3", "n4")
HUGE = str(2**53 + 1)  # bytes; not exact in floating point


def make_state() -> ClusterState:
    state = ClusterState()
    for number, name in enumerate(NAMES[:4]):
        state.apply_node(make_node(name, cpu=4, labels={"rack": f"r{number % 2}"}))
    return state


def racks_of(snapshot: Snapshot) -> Placements:
    rows, column = snapshot.live_rows()[:4], snapshot.labels.column("rack")
    return partition(rows, column.ids[rows], column.values)


def said(totals: DomainTotals, placements: Placements, snapshot: Snapshot) -> list[list[list[float]]]:
    return [sums.tolist() for sums in totals.of(placements, snapshot)]


def summed(placements: Placements, snapshot: Snapshot) -> list[list[list[float]]]:
    return [
        placements.float_totals(amounts).tolist() for amounts in (snapshot.requested, snapshot.allocatable)
    ]


@given(data=st.data())
def test_after_any_changes_the_sums_are_those_that_would_be_found_anew(data: st.DataObject) -> None:
    """The slow twin adds everything up."""
    state, totals = make_state(), DomainTotals()
    placements = racks_of(state.snapshot())
    older = state.snapshot()
    for step in range(data.draw(st.integers(1, 8))):
        for _ in range(data.draw(st.integers(0, 2))):
            name = data.draw(st.sampled_from(NAMES))
            match data.draw(st.sampled_from(["pod", "pod", "huge", "gone", "node"])):
                case "pod":
                    state.apply_pod(make_pod(f"p{step}", node=name, cpu=data.draw(st.integers(1, 9))))
                case "huge":
                    state.apply_pod(make_pod(f"p{step}", node=name, memory=HUGE))
                case "gone":
                    state.remove_pod(("default", f"p{data.draw(st.integers(0, step))}"), "")
                case "node":
                    rack = f"r{NAMES.index(name) % 2}"
                    state.apply_node(make_node(name, cpu=data.draw(st.integers(1, 9)), labels={"rack": rack}))
        snapshot = state.snapshot()
        fork = snapshot.fork()
        for row in data.draw(st.lists(st.integers(0, 3), max_size=2)):
            fork.place(make_pod("placed", cpu=1), row)
        for view in data.draw(st.permutations([snapshot, fork, older])):
            assert said(totals, placements, view) == summed(placements, view)


def test_other_placements_are_added_up_by_themselves() -> None:
    snapshot, totals = make_state().snapshot(), DomainTotals()
    both = racks_of(snapshot)
    second = both.keep(np.array([False, True]))
    for placements in (both, both, both, second, both, second, second, second):
        assert said(totals, placements, snapshot) == summed(placements, snapshot)


@pytest.mark.parametrize("is_there_before", [True, False])
def test_sums_that_floating_point_rounds_are_rounded_as_before(is_there_before: bool) -> None:
    state, totals = make_state(), DomainTotals()
    placements = racks_of(state.snapshot())
    steps = [("n0", HUGE), ("n2", "1")]
    while steps:
        if not is_there_before:
            totals.of(placements, state.snapshot())
            totals.of(placements, state.snapshot())
        name, amount = steps.pop(0)
        state.apply_pod(make_pod(f"on-{name}", node=name, memory=amount))
    for _ in range(3):
        assert said(totals, placements, state.snapshot()) == summed(placements, state.snapshot())


def test_only_rows_that_changed_are_added_up() -> None:
    state, totals = make_state(), DomainTotals()
    placements = racks_of(state.snapshot())
    for _ in range(2):
        totals.of(placements, state.snapshot())
    state.apply_pod(make_pod("p", node="n1", cpu=3))
    snapshot = state.snapshot()
    requested = snapshot.requested.copy()
    requested[0] = 77  # a row that has not changed is not looked at
    looked_at = snapshot.fork()
    looked_at._requested = requested
    assert said(totals, placements, looked_at) == summed(placements, snapshot)
