"""What is remembered of a shape, and for how long."""

import numpy as np
import pytest

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.placement import memory
from muster.placement.memory import Judgment, Memory
from muster.testing.builders import make_cluster, make_node, make_pod

POD = make_pod(cpu=1)


class Asked:
    """Says that a row takes as many pods as it has; notes which rows it was asked about."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []

    def __call__(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        self.rows.append(rows.tolist())
        fits = np.array([len(snapshot.pods_on(row)) for row in rows.tolist()], dtype=np.int64)
        return Judgment(np.ones(len(rows), dtype=np.bool_), np.ones(len(rows)), fits)


def test_rows_that_changed_on_a_fork_are_asked_about_and_not_remembered() -> None:
    asked = Asked()
    remembered, snapshot = Memory(), make_cluster().nodes(3).snapshot()
    fork = snapshot.fork()
    fork.place(POD, 1)
    assert remembered.recall(POD, b"s", fork, asked).fits.tolist() == [0, 1, 0]
    assert remembered.recall(POD, b"s", snapshot, asked).fits.tolist() == [0, 0, 0]
    assert asked.rows == [[0, 1, 2], [1]]


def test_a_node_that_is_gone_takes_nobody_and_a_new_one_is_asked_about() -> None:
    asked, cluster = Asked(), make_cluster().nodes(2)
    remembered = Memory()
    remembered.recall(POD, b"s", cluster.snapshot(), asked)
    cluster.state.remove_node("n1")
    assert remembered.recall(POD, b"s", cluster.snapshot(), asked).feasible.tolist() == [False, True]
    cluster.node("n8").node("n9")
    assert remembered.recall(POD, b"s", cluster.snapshot(), asked).feasible.tolist() == [True, True, True]
    assert asked.rows == [[0, 1], [0, 2]]


def test_an_older_snapshot_is_answered_as_it_was() -> None:
    cluster, remembered = make_cluster().nodes(2), Memory()
    old = cluster.snapshot()
    new = cluster.running("p", "n1").snapshot()
    assert remembered.recall(POD, b"s", new, Asked()).fits.tolist() == [1, 0]
    assert remembered.recall(POD, b"s", old, Asked()).fits.tolist() == [0, 0]
    assert remembered.recall(POD, b"s", new, Asked()).fits.tolist() == [1, 0]


def test_a_snapshot_of_another_cluster_is_not_taken_for_this_one() -> None:
    remembered = Memory()
    remembered.recall(POD, b"s", make_cluster().nodes(2).running("p", "n1").snapshot(), Asked())
    other = make_cluster().nodes(2).snapshot()
    assert remembered.recall(POD, b"s", other, Asked()).fits.tolist() == [0, 0]


def test_a_resource_offered_for_the_first_time_is_a_new_question() -> None:
    asked, cluster = Asked(), make_cluster().nodes(2)
    remembered = Memory()
    remembered.recall(POD, b"s", cluster.snapshot(), asked)
    remembered.recall(POD, b"s", cluster.node(gpu=1).snapshot(), asked)
    assert asked.rows == [[0, 1], [0, 1, 2]]


def test_the_shape_not_asked_for_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "BYTES_MAX", 2 * (memory.BYTES_PER_SHAPE + 3 * memory.BYTES_PER_ROW))
    asked, snapshot = Asked(), make_cluster().nodes(3).snapshot()
    remembered = Memory()
    for shape in (b"a", b"b", b"a", b"c", b"a", b"b"):
        remembered.recall(POD, shape, snapshot, asked)
    assert len(asked.rows) == len("abcb")


def test_what_looks_at_nodes_alone_is_asked_again_when_a_node_changes_and_not_for_pods() -> None:
    asked, cluster = Asked(), make_cluster().nodes(3)
    remembered = Memory(of_nodes=True)
    remembered.recall(POD, b"s", cluster.snapshot(), asked)
    fork = cluster.running("p", "n1").snapshot().fork()
    fork.place(POD, 1)
    remembered.recall(POD, b"s", fork, asked)
    assert asked.rows == [[0, 1, 2]]
    cluster.running("q", "n2")
    cluster.state.apply_node(make_node("n3", labels={"a": "b"}))
    remembered.recall(POD, b"s", cluster.snapshot(), asked)
    assert asked.rows == [[0, 1, 2], [1, 2]]
