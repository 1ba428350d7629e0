"""PodDisruptionBudget status: how many pods are healthy, must be, and may be evicted now.

A budget is computed again whenever itself or a pod it selects changes.  Pods that an eviction has taken
(`status.disruptedPods`) count as gone until they are, or for two minutes.
Source: the stock disruption controller; of its scale sources only what this server serves exists here, so
a percentage or `maxUnavailable` over pods of a controller is a failed sync, as it is for any controller
without a scale there.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from muster.controllers.objects import (
    controller_of,
    has_condition,
    is_deleting,
    name_of,
    namespace_of,
    seconds_of,
    uid_of,
    with_condition,
)
from muster.controllers.ports import DISRUPTION_BUDGETS, PODS, Ask, Object, Seen, View, Wake, Write
from muster.controllers.reconciler import Key, Reconciler
from muster.controllers.selectors import matches

_DISRUPTED_S = 120.0


class _Counts(NamedTuple):
    expected: int
    desired: int


class DisruptionStatus(Reconciler):
    """Keeps the status of budgets; a key is a budget's namespace and name."""

    name = "disruption-controller"
    kinds = (DISRUPTION_BUDGETS, PODS)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == DISRUPTION_BUDGETS:
            after = change.after
            if after is None or not _nothing_new(change.before, after):
                yield (namespace_of(change.object), name_of(change.object))
        elif change.kind == PODS:
            for budget in view.list(DISRUPTION_BUDGETS, namespace_of(change.object)):
                selector = budget["spec"].get("selector")
                if any(
                    matches(selector, pod["metadata"].get("labels"))
                    for pod in (change.before, change.after)
                    if pod is not None
                ):
                    yield (namespace_of(budget), name_of(budget))

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        namespace, name = key
        budget = view.get(DISRUPTION_BUDGETS, namespace, name)
        if budget is None:
            return
        selector = budget["spec"].get("selector")
        pods = [pod for pod in view.list(PODS, namespace) if matches(selector, pod["metadata"].get("labels"))]
        failure = _unscalable(budget, pods)
        if failure:
            yield from self._fail(budget, failure, now_s)
            return
        counts = _counts_of(budget, pods)
        disrupted, recheck_s = _still_disrupted(budget, pods, now_s)
        healthy = sum(
            1
            for pod in pods
            if not is_deleting(pod) and name_of(pod) not in disrupted and has_condition(pod, "Ready")
        )
        allowed = max(0, healthy - counts.desired) if counts.expected > 0 else 0
        status = {
            "currentHealthy": healthy,
            "desiredHealthy": counts.desired,
            "expectedPods": counts.expected,
            "disruptionsAllowed": allowed,
            "disruptedPods": disrupted or None,
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
        yield from _write_status(budget, status, allowed=allowed > 0, reason=reason, message="", now_s=now_s)
        if recheck_s is not None:
            yield Wake(recheck_s)

    def _fail(self, budget: Object, message: str, now_s: float) -> Iterator[Ask]:
        status = {
            "disruptionsAllowed": 0,
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        yield from _write_status(
            budget, status, allowed=False, reason="SyncFailed", message=message, now_s=now_s
        )


def _nothing_new(before: Object | None, after: Object) -> bool:
    return (
        before is not None
        and before["metadata"].get("generation") == after["metadata"].get("generation")
        and before.get("status") == after.get("status")
    )


def _unscalable(budget: Object, pods: list[Object]) -> str:
    """Why the expected number of pods cannot be told; empty where it can."""
    minimum = budget["spec"].get("minAvailable")
    if isinstance(minimum, int):
        return ""
    controlled = next((pod for pod in pods if controller_of(pod) is not None), None)
    return "" if controlled is None else f'found no controllers for pod "{name_of(controlled)}"'


def _counts_of(budget: Object, pods: list[Object]) -> _Counts:
    """Expected and desired pods; pods without a controller have no scale, so of those none is expected."""
    minimum = budget["spec"].get("minAvailable")
    if isinstance(minimum, int):
        return _Counts(len(pods), minimum)
    expected = 0
    if minimum is not None:
        return _Counts(expected, _scaled(minimum, expected))
    maximum = budget["spec"].get("maxUnavailable")
    return _Counts(expected, max(0, expected - _scaled(maximum, expected)) if maximum is not None else 0)


def _scaled(value: Any, total: int) -> int:
    if isinstance(value, int):
        return value
    return math.ceil(int(str(value).rstrip("%")) * total / 100)


def _still_disrupted(budget: Object, pods: list[Object], now_s: float) -> tuple[dict[str, str], float | None]:
    """Pods evicted but not yet going, and when the first of them stops counting."""
    by_name = {name_of(pod): pod for pod in pods}
    left: dict[str, str] = {}
    recheck_s: float | None = None
    entries = (budget.get("status") or {}).get("disruptedPods") or {}
    for name, time in sorted(entries.items()):
        pod = by_name.get(name)
        since_s = seconds_of(time)
        if pod is None or is_deleting(pod) or since_s is None or since_s + _DISRUPTED_S <= now_s:
            continue
        left[name] = time
        recheck_s = min(recheck_s or math.inf, since_s + _DISRUPTED_S)
    return left, recheck_s


def _write_status(
    budget: Object, status: dict[str, Any], *, allowed: bool, reason: str, message: str, now_s: float
) -> Iterator[Write]:
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": reason,
        "message": message,
        "observedGeneration": status["observedGeneration"],
    }
    status["conditions"] = with_condition(budget, condition, now_s)
    before = budget.get("status") or {}
    if all(before.get(field) == value for field, value in status.items()):
        return
    removed = dict.fromkeys(before.get("disruptedPods") or ())
    if removed:
        status["disruptedPods"] = {**removed, **(status.get("disruptedPods") or {})}
    body = {
        "metadata": {"resourceVersion": budget["metadata"]["resourceVersion"]},
        "status": status,
    }
    yield Write(
        "patch",
        DISRUPTION_BUDGETS,
        namespace_of(budget),
        name_of(budget),
        body,
        "status",
        uid_of(budget),
    )
