"""Events go after an hour."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import START_S, SmallCluster

from muster.controllers.event_expiry import EventExpiry
from muster.controllers.objects import rfc3339
from muster.controllers.ports import EVENTS


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(EventExpiry())


@pytest.mark.parametrize(
    ("fields", "lives_s"),
    [
        pytest.param({}, 3600, id="since-created"),
        pytest.param({"lastTimestamp": rfc3339(START_S + 600)}, 4200, id="since-last-said"),
        pytest.param({"series": {"lastObservedTime": "soon"}}, 3600, id="no-time-at-all"),
    ],
)
def test_an_event_goes_an_hour_after_it_was_said(
    cluster: SmallCluster, fields: dict[str, Any], lives_s: int
) -> None:
    cluster.create(EVENTS, "e", **fields)
    cluster.run(lives_s - 1)
    assert cluster.find(EVENTS, "e") is not None
    cluster.run(2)
    assert cluster.find(EVENTS, "e") is None


def test_said_again_it_stays_another_hour(cluster: SmallCluster) -> None:
    cluster.create(EVENTS, "e")
    cluster.run(1800)
    cluster.patch(EVENTS, "e", {"lastTimestamp": rfc3339(cluster.now_s)})
    cluster.run(3000)
    assert cluster.find(EVENTS, "e") is not None
    cluster.run(700)
    assert cluster.find(EVENTS, "e") is None


def test_an_event_written_anew_under_a_name_is_another(cluster: SmallCluster) -> None:
    cluster.create(EVENTS, "e")
    cluster.run(1800)
    cluster.delete(EVENTS, "e")
    cluster.create(EVENTS, "e")
    cluster.run(3000)
    assert cluster.find(EVENTS, "e") is not None
