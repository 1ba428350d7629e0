"""Units as columns: many come and go at once."""

import numpy as np
import pytest
from msgspec.structs import replace

from muster.placement.evictable import UnitColumns
from muster.placement.victims import Unit
from muster.testing.builders import make_cluster, make_pod


def test_units_go_and_come_back_with_what_they_take() -> None:
    cluster = make_cluster().node("n1", cpu=4).node("n2", cpu=4)
    cluster.running("a", "n1", cpu=1).running("b", "n2", cpu=2).running("c", "n2", cpu=1)
    snapshot = cluster.snapshot()
    a, b, c = snapshot.pods_on(0)[0], *snapshot.pods_on(1)
    pair = Unit("pair", 2, ((a, 0), (b, 1)), True)
    units = [pair, Unit("away", 1, ((make_pod("x", cpu=9), -1),)), Unit("c", 0, ((c, 1),))]
    columns = UnitColumns(units, snapshot)
    assert [list(columns.pods_of(unit)) for unit in units] == [[0, 1], [], [2]]
    fork = snapshot.fork()
    columns.remove(fork, columns.positions([pair]))
    cpu = fork.axis.column_of("cpu")
    assert fork.requested[:, cpu].tolist() == [0, 1000]
    assert fork.pods_on(1) == (c,)
    columns.put_back(fork, columns.positions([pair]))
    assert np.array_equal(fork.requested, snapshot.requested)
    columns.remove(fork, [])


def test_who_is_leaving_with_all_its_pods_is_known() -> None:
    snapshot = make_cluster().node("n1").snapshot()
    stays = Unit("a", 1, ((make_pod("a"), -1),))
    assert UnitColumns([stays], snapshot).leaving == frozenset()


def test_a_pod_that_is_not_there_cannot_go() -> None:
    snapshot = make_cluster().node("n1").snapshot()
    columns = UnitColumns([Unit("a", 1, ((make_pod("a"), 0),))], snapshot)
    with pytest.raises(ValueError, match="default/a is not on row 0"):
        columns.remove(snapshot.fork(), [0])


def test_a_unit_counts_the_pods_that_nobody_has_asked_to_delete() -> None:
    snapshot = make_cluster().node("n1").snapshot()
    going = make_pod("b")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp="2027-01-15T07:59:59Z"))
    units = [
        Unit("pair", 7, ((make_pod("a"), 0), (going, 0)), True),
        Unit("b", 3, ((going, 0),)),
    ]
    columns = UnitColumns(units, snapshot)
    assert (columns.staying.tolist(), columns.priority.tolist()) == ([1, 0], [7, 3])
    assert columns.leaving == {id(units[1])}
