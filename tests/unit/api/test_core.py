"""What a pod is, beside what it was."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.cluster.bound_pods import bound

from muster.api.meta import Condition
from muster.testing.builders import make_pod

WAITING = make_pod(cpu=1, version="1")
BOUND = bound(WAITING, "n1", "2")


def test_a_pod_that_was_bound_since_is_just_bound_and_asks_as_before() -> None:
    assert BOUND.is_just_bound(WAITING)
    assert BOUND.asks_as(WAITING)
    assert not WAITING.is_just_bound(WAITING)
    assert not BOUND.is_just_bound(BOUND)


@pytest.mark.parametrize(
    ("part", "changed"),
    [
        ("status", {"phase": "Running"}),
        ("status", {"start_time": "2026-01-01T00:00:00Z"}),
        ("status", {"conditions": [Condition("PodResizePending", "True")]}),
        ("metadata", {"labels": {"zone": "a"}}),
        ("metadata", {"annotations": {"a": "b"}}),
        ("metadata", {"deletion_timestamp": "2026-01-01T00:00:00Z"}),
        ("spec", {"priority": 7}),
    ],
)
def test_a_pod_that_was_bound_and_is_otherwise_another_is_not_just_bound(
    part: str, changed: dict[str, Any]
) -> None:
    other = replace(BOUND, **{part: replace(getattr(BOUND, part), **changed)})
    assert not other.is_just_bound(WAITING)
    assert other.asks_as(WAITING) == (part == "status" or not changed.keys() & {"labels", "priority"})
