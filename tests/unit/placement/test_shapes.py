"""Pods of one shape."""

from typing import Any

import pytest

from muster.placement.shapes import shape_key
from muster.testing.builders import make_pod

SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]


def test_members_of_one_gang_share_a_shape() -> None:
    one = make_pod("g-0", group="g", cpu=1, node_selector={"a": "1", "b": "2"}, labels={"index": "0"})
    two = make_pod("g-1", group="g", cpu=1, node_selector={"b": "2", "a": "1"}, labels={"index": "1"})
    assert shape_key(one) == shape_key(two)


@pytest.mark.parametrize(
    "words",
    [
        {"cpu": 2},
        {"namespace": "other"},
        {"node_selector": {"rack": "r1"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"host_ports": [80]},
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
        {"topology_spread_constraints": SPREAD},
        {"overhead": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "1"}}},
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        {"init_containers": [{"name": "i"}]},
        {"resource_claims": [{"name": "c"}]},
    ],
    ids=lambda words: next(iter(words)),
)
def test_whatever_a_filter_looks_at_makes_another_shape(words: dict[str, Any]) -> None:
    assert shape_key(make_pod(**{"cpu": 1, **words})) != shape_key(make_pod(cpu=1))


def test_labels_and_annotations_count_where_a_plugin_reads_them() -> None:
    one, two = make_pod(labels={"a": "1"}), make_pod(labels={"a": "2"})
    assert shape_key(one) == shape_key(two)
    assert shape_key(one, metadata=True) != shape_key(two, metadata=True)


def test_of_the_labels_only_those_count_that_rules_read() -> None:
    one, two = make_pod(labels={"app": "x", "index": "1"}), make_pod(labels={"app": "x", "index": "2"})
    assert shape_key(one, labels=frozenset(("app",))) == shape_key(two, labels=frozenset(("app",)))
    assert shape_key(one, labels=frozenset(("index",))) != shape_key(two, labels=frozenset(("index",)))


def test_an_amount_beyond_all_bounds_is_part_of_the_shape() -> None:
    huge, larger = (make_pod("p", requests={"a": 10**40 + more}) for more in (0, 1))
    assert shape_key(huge) != shape_key(larger)
