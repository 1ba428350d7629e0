"""The row of a pod."""

from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.pod_table import COLUMNS, pod_cells

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def row(status: Object, spec: Object | None = None, **meta: Any) -> list[Any]:
    created = {"name": "p", "creationTimestamp": "2025-12-31T23:59:00Z", **meta}
    whole = {"containers": [{"name": "c"}], **(spec or {})}
    return pod_cells({"metadata": created, "spec": whole, "status": status}, NOW_S)


def state(name: str = "c", *, ready: bool = False, restarts: int = 0, **states: Any) -> Object:
    return {"name": name, "ready": ready, "restartCount": restarts, "state": states}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        pytest.param({"phase": "Pending"}, "Pending", id="phase"),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, "Evicted", id="reason"),
        pytest.param(
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
            id="gated",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [state(waiting={"reason": "ImagePullBackOff"})]},
            "ImagePullBackOff",
            id="waiting",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [state(terminated={"exitCode": 3})]},
            "ExitCode:3",
            id="ended without a word",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [state(terminated={"signal": 9, "exitCode": 137})]},
            "Signal:9",
            id="killed",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "initContainerStatuses": [state("i", waiting={"reason": "PodInitializing"})],
            },
            "Init:0/1",
            id="initializing",
        ),
        pytest.param(
            {"phase": "Pending", "initContainerStatuses": [state("i", terminated={"exitCode": 2})]},
            "Init:ExitCode:2",
            id="initialization failed",
        ),
    ],
)
def test_one_word_says_how_a_pod_is(status: Object, word: str) -> None:
    assert (
        row(status, {"initContainers": [{"name": "i"}]} if "initContainerStatuses" in status else None)[2]
        == word
    )


def test_restarts_say_when_the_last_was() -> None:
    status = state(ready=True, restarts=2, running={})
    status["lastState"] = {"terminated": {"finishedAt": "2025-12-31T23:00:00Z"}}
    cells = row({"phase": "Running", "containerStatuses": [status]})
    assert cells[:5] == ["p", "1/1", "Running", "2 (60m ago)", "60s"]


def test_what_is_going_is_terminating_unless_it_has_ended() -> None:
    assert row({"phase": "Running"}, deletionTimestamp="t")[2] == "Terminating"
    assert row({"phase": "Succeeded"}, deletionTimestamp="t")[2] == "Succeeded"


def test_a_sidecar_counts_among_the_ready() -> None:
    spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    sidecar = {**state("s", ready=True, running={}), "started": True}
    cells = row({"phase": "Running", "initContainerStatuses": [sidecar]}, spec)
    assert cells[1] == "1/2"


def test_a_job_that_is_half_done_runs() -> None:
    done = state("a", terminated={"reason": "Completed"})
    status = {"phase": "Running", "containerStatuses": [done, state("c", ready=True, running={})]}
    assert row(status)[2] == "NotReady"
    assert row({**status, "conditions": [{"type": "Ready", "status": "True"}]})[2] == "Running"


def test_wide_columns_say_where() -> None:
    status = {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "m"}
    status["conditions"] = [{"type": "x", "status": "True"}]
    spec = {"nodeName": "n", "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]}
    assert row(status, spec)[5:] == ["10.0.0.1", "n", "m", "1/2"]
    assert len(COLUMNS) == 9
