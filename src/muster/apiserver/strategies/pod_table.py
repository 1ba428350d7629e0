"""The row of a pod: ready containers, one word for its state, restarts."""

from typing import Any

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.fields import items, mapping, text
from muster.apiserver.strategies.printing import NONE, Column, age, column, duration, seconds

TERMINAL = ("Succeeded", "Failed")
COLUMNS: tuple[Column, ...] = (
    column("Name"),
    column("Ready"),
    column("Status"),
    column("Restarts"),
    column("Age"),
    column("IP", wide=True),
    column("Node", wide=True),
    column("Nominated Node", wide=True),
    column("Readiness Gates", wide=True),
)


class _Tally:
    """What is counted on the way through the statuses."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.ready = 0
        self.restarts = 0
        self.last_restart_s: float | None = None

    def count(self, status: Object) -> None:
        self.restarts += status.get("restartCount") or 0
        ended = mapping(mapping(status, "lastState"), "terminated").get("finishedAt")
        ended_s = seconds(ended)
        if ended_s is not None and (self.last_restart_s is None or ended_s > self.last_restart_s):
            self.last_restart_s = ended_s


def pod_cells(pod: Object, now_s: float) -> list[Any]:
    """One row, wide columns included."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    sidecars = {text(c, "name") for c in items(spec, "initContainers") if c.get("restartPolicy") == "Always"}
    tally = _Tally(_first_word(status))
    if not _initializing(tally, spec, status, sidecars) or _is_true(status, "Initialized"):
        _running(tally, status, sidecars)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart_s is not None:
        restarts = f"{restarts} ({duration(now_s - tally.last_restart_s)} ago)"
    total = len(items(spec, "containers")) + len(sidecars)
    return [
        pod["metadata"]["name"],
        f"{tally.ready}/{total}",
        _last_word(tally.reason, pod),
        restarts,
        age(pod, now_s),
        text((items(status, "podIPs") or [{}])[0], "ip") or NONE,
        text(spec, "nodeName") or NONE,
        text(status, "nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _first_word(status: Object) -> str:
    gated = any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated"
        for c in items(status, "conditions")
    )
    return "SchedulingGated" if gated else text(status, "reason") or text(status, "phase")


def _last_word(reason: str, pod: Object) -> str:
    if not pod["metadata"].get("deletionTimestamp"):
        return reason
    status = mapping(pod, "status")
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if text(status, "phase") in TERMINAL else "Terminating"


def _initializing(tally: _Tally, spec: Object, status: Object, sidecars: set[str]) -> bool:
    count = len(items(spec, "initContainers"))
    for index, container in enumerate(items(status, "initContainerStatuses")):
        tally.count(container)
        state = mapping(container, "state")
        ended, waiting = state.get("terminated"), mapping(state, "waiting")
        if isinstance(ended, dict) and not ended.get("exitCode"):
            continue
        if text(container, "name") in sidecars and container.get("started"):
            tally.ready += 1 if container.get("ready") else 0
            continue
        if isinstance(ended, dict):
            tally.reason = f"Init:{_ended(ended)}"
        elif text(waiting, "reason") not in ("", "PodInitializing"):
            tally.reason = f"Init:{text(waiting, 'reason')}"
        else:
            tally.reason = f"Init:{index}/{count}"
        return True
    return False


def _ended(state: Object) -> str:
    if text(state, "reason"):
        return text(state, "reason")
    if state.get("signal"):
        return f"Signal:{state['signal']}"
    return f"ExitCode:{state.get('exitCode') or 0}"


def _running(tally: _Tally, status: Object, sidecars: set[str]) -> None:
    tally.restarts, tally.last_restart_s = 0, None
    for container in items(status, "initContainerStatuses"):
        if text(container, "name") in sidecars:
            tally.count(container)
    has_running = False
    for container in reversed(items(status, "containerStatuses")):
        tally.count(container)
        state = mapping(container, "state")
        ended, waiting = state.get("terminated"), mapping(state, "waiting")
        if text(waiting, "reason"):
            tally.reason = text(waiting, "reason")
        elif isinstance(ended, dict):
            tally.reason = _ended(ended)
        elif container.get("ready") and state.get("running") is not None:
            has_running = True
            tally.ready += 1
    if tally.reason == "Completed" and has_running:
        ready = _is_true(status, "Ready")
        tally.reason = "Running" if ready else "NotReady"


def _is_true(status: Object, type_: str) -> bool:
    return any(c.get("type") == type_ and c.get("status") == "True" for c in items(status, "conditions"))


def _gates(spec: Object, status: Object) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    true = {c.get("type") for c in items(status, "conditions") if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"
