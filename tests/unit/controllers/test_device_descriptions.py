"""Descriptions of devices: what becomes of them, and how their mistakes are named."""

from typing import Any

import pytest

from muster.base.errors import ConfigError
from muster.controllers.device_descriptions import read_pools

GPU = "gpu.example.com"


def entry(**fields: Any) -> dict[str, Any]:
    return {"driver": GPU, "count": 2, **fields}


def test_devices_are_numbered_and_alike() -> None:
    described = entry(
        name="gpu",
        attributes={"model": "H100", "index": 3, "healthy": True, "driverVersion": {"version": "1.2.3"}},
        capacity={"memory": "80Gi", "lanes": 16},
        taints=[{"key": "slow", "effect": "NoSchedule"}],
    )
    (pool,) = read_pools([described], "n1", "$")
    assert (pool.driver, pool.name) == (GPU, "n1")
    assert pool.devices == [
        {
            "name": f"gpu-{number}",
            "attributes": {
                "model": {"string": "H100"},
                "index": {"int": 3},
                "healthy": {"bool": True},
                "driverVersion": {"version": "1.2.3"},
            },
            "capacity": {"memory": {"value": "80Gi"}, "lanes": {"value": "16"}},
            "taints": [{"key": "slow", "effect": "NoSchedule"}],
        }
        for number in (0, 1)
    ]


def test_neighbours_have_their_pair_in_common() -> None:
    (pool,) = read_pools([entry(count=5, pairs=f"{GPU}/pair")], "n1", "$")
    pairs = [device["attributes"][f"{GPU}/pair"]["int"] for device in pool.devices]
    assert pairs == [0, 0, 1, 1, 2]


MIG = {"counters": {"slices": 7, "memory": "80Gi"}, "attributes": {"model": "H100"}}
PART = {"name": "1g", "count": 2, "counters": {"slices": 1, "memory": "10Gi"}}


def test_a_device_and_its_parts_are_cut_from_the_same_counters() -> None:
    part = {**PART, "attributes": {"profile": "1g.10gb"}, "capacity": {"memory": "10Gi"}}
    (pool,) = read_pools([entry(name="mig", **MIG, partitions=[part])], "n1", "$")
    amounts = {"slices": {"value": "7"}, "memory": {"value": "80Gi"}}
    assert pool.counter_sets == [{"name": name, "counters": amounts} for name in ("mig-0", "mig-1")]
    kinds = [device["name"] for device in pool.devices]
    assert kinds == ["mig-0", "mig-0-1g-0", "mig-0-1g-1", "mig-1", "mig-1-1g-0", "mig-1-1g-1"]
    whole, first = pool.devices[3:5]
    assert whole["consumesCounters"] == [{"counterSet": "mig-1", "counters": amounts}]
    assert first == {
        "name": "mig-1-1g-0",
        "attributes": {"profile": {"string": "1g.10gb"}, "parent": {"string": "mig-1"}},
        "capacity": {"memory": {"value": "10Gi"}},
        "consumesCounters": [
            {"counterSet": "mig-1", "counters": {"slices": {"value": "1"}, "memory": {"value": "10Gi"}}}
        ],
    }


def test_parts_are_tainted_with_the_whole() -> None:
    taints = [{"key": "slow", "effect": "NoSchedule"}]
    (pool,) = read_pools([entry(taints=taints, **MIG, partitions=[PART])], "n1", "$")
    assert all(device["taints"] == taints for device in pool.devices)


def test_entries_of_one_pool_come_together_and_others_stay_apart() -> None:
    found = read_pools([entry(name="a"), entry(name="b"), entry(pool="other")], "n1", "$")
    assert [(pool.name, len(pool.devices)) for pool in found] == [("n1", 4), ("other", 2)]


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        pytest.param({}, "$: must be a list", "count: 8", id="no-list"),
        pytest.param([3], "$[0]: must be an object, got 3", "count: 8", id="no-object"),
        pytest.param(
            [{"count": 1}], "$[0]: Object missing required field `driver`", "count: 8", id="no-driver"
        ),
        pytest.param([entry(cuont=1)], "$[0]: Object contains unknown field", "'count'", id="typo"),
        pytest.param([entry(count="8")], "$[0].count: Expected `int`", "count: 8", id="no-number"),
        pytest.param([entry(count=0)], "$[0].count: must be between 1 and 128", "pool", id="none-of-it"),
        pytest.param([entry(driver="GPU")], "$[0].driver: not a name", "gpu.example.com", id="driver"),
        pytest.param([entry(name="a.b")], "$[0].name: not a name", "gpu", id="name"),
        pytest.param([entry(pool="A")], "$[0].pool: not a name", "leave it out", id="pool"),
        pytest.param(
            [entry(attributes={"a-b": 1})], "$[0].attributes.a-b: not a name", "model", id="attribute"
        ),
        pytest.param(
            [entry(attributes={"a": 1.5})], "$[0].attributes.a: not a value: 1.5", "true", id="value"
        ),
        pytest.param(
            [entry(attributes={"a": "x" * 65})], "$[0].attributes.a: longer than 64", "shorten", id="long"
        ),
        pytest.param(
            [entry(attributes={"a": {"version": "1"}})],
            "$[0].attributes.a: not a version",
            "1.2.3",
            id="version",
        ),
        pytest.param(
            [entry(capacity={"a": "8x"})], "$[0].capacity.a: not a quantity: '8x'", "80Gi", id="amount"
        ),
        pytest.param([entry(pairs="a/b/c")], "$[0].pairs: not a name", "pair", id="pairs"),
        pytest.param(
            [entry(pairs="a", attributes={"a": 1})], "$[0].pairs: 'a' is among", "one of", id="twice"
        ),
        pytest.param(
            [entry(taints=[{"key": "a", "effect": "No"}])],
            "$[0].taints[0].effect: must be one of",
            "",
            id="effect",
        ),
        pytest.param(
            [entry(), entry()], "$[1].name: 'device-0' is the name of another", "its own", id="same-name"
        ),
        pytest.param(
            [entry(count=100), entry(name="b", count=29)],
            "$[1].count: pool 'n1' of gpu.example.com would have 129 devices of at most 128",
            "another pool",
            id="too-many",
        ),
        pytest.param(
            [entry(count=64, taints=[{"key": "a", "effect": "None"}]), entry(name="b", count=1)],
            "$[1].count: pool 'n1' of gpu.example.com would have 65 devices of at most 64",
            "another pool",
            id="too-many-with-taints",
        ),
        pytest.param(
            [entry(count=9, **MIG, partitions=[PART])],
            "$[0].count: pool 'n1' of gpu.example.com would have 9 divided devices of at most 8",
            "another pool",
            id="too-many-divided",
        ),
        pytest.param(
            [entry(**MIG)], "$[0].partitions: counters and partitions go together", "cut", id="no-partitions"
        ),
        pytest.param(
            [entry(partitions=[PART])], "$[0].counters: counters and partitions", "slices", id="no-counters"
        ),
        pytest.param(
            [entry(**MIG, partitions=[{**PART, "counters": {"cores": 1}}])],
            "$[0].partitions[0].counters: must be some of the device's counters: slices, memory",
            "",
            id="other-counters",
        ),
        pytest.param(
            [entry(**MIG, partitions=[{**PART, "count": 0}])],
            "$[0].partitions[0].count: must be between 1 and 64, got 0",
            "",
            id="no-parts",
        ),
        pytest.param(
            [entry(**MIG, partitions=[{**PART, "attributes": {"parent": "x"}}])],
            "$[0].partitions[0].attributes.parent: is the name of the device",
            "leave it out",
            id="own-parent",
        ),
        pytest.param(
            [entry(**{**MIG, "counters": {"Slices": 7}}, partitions=[PART])],
            "$[0].counters.Slices: not a name",
            "lower case",
            id="counter-name",
        ),
    ],
)
def test_a_mistake_names_field_and_cure(value: Any, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_pools(value, "n1", "$")
    assert str(caught.value).startswith(message)
    assert hint in caught.value.hint
