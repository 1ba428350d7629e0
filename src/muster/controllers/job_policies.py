"""What a Job says about failures and successes: pod failure policy, limits per index, success policy.

In come Job, pod or finished indexes as plain objects; out goes what a failure means and which rule is met.
Next: `job_status.py`, which counts accordingly.
Source: KEP-3329 (podFailurePolicy), KEP-3850 (backoffLimitPerIndex), KEP-3998 (successPolicy).
"""

from collections.abc import Iterable
from typing import NamedTuple

from muster.base.numbers import whole_number
from muster.controllers.objects import annotation_of, name_of, namespace_of, phase_of
from muster.controllers.ports import Object

COUNT, IGNORE, FAIL_JOB, FAIL_INDEX = "Count", "Ignore", "FailJob", "FailIndex"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"


class Meaning(NamedTuple):
    """What is done about a failed pod; `message` says which rule of the policy wants it."""

    action: str = COUNT
    message: str = ""


def meaning_of_failure(job: Object, pod: Object) -> Meaning:
    """Give the first rule of the pod failure policy that the pod meets; without one it just counts."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    if phase_of(pod) != "Failed":
        return Meaning()
    for number, rule in enumerate(rules):
        found = _exit_code_met(rule, pod) or _condition_met(rule, pod)
        if found:
            action = str(rule.get("action") or COUNT)
            return Meaning(action, f"{found} matching {action} rule at index {number}")
    return Meaning()


def _exit_code_met(rule: Object, pod: Object) -> str:
    wanted = rule.get("onExitCodes")
    if not wanted:
        return ""
    status = pod.get("status") or {}
    for container in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if wanted.get("containerName") not in (None, container.get("name")):
            continue
        ended = (container.get("state") or {}).get("terminated")
        code = (ended or {}).get("exitCode") or 0
        if code and (code in (wanted.get("values") or ())) == (wanted.get("operator") == "In"):
            place = f"{namespace_of(pod)}/{name_of(pod)}"
            return f"Container {container.get('name')} for pod {place} failed with exit code {code}"
    return ""


def _condition_met(rule: Object, pod: Object) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    for wanted in rule.get("onPodConditions") or ():
        for condition in conditions:
            said = (condition.get("type"), condition.get("status"))
            if said == (wanted.get("type"), wanted.get("status", "True")):
                return f"Pod {namespace_of(pod)}/{name_of(pod)} has condition {condition['type']}"
    return ""


def index_limit(job: Object) -> int | None:
    """How many failures each index may have; None where the Job limits them together."""
    limit = job["spec"].get("backoffLimitPerIndex")
    return None if limit is None else int(limit)


def failures_before(pod: Object) -> int:
    """How many pods of the same index failed before this one was made."""
    text = annotation_of(pod, FAILURE_COUNT)
    return whole_number(text or "") or 0


def failures_so_far(job: Object, pods: Iterable[Object]) -> int:
    """How many failures the next pod of an index follows, by the pods of that index."""
    return max(
        (
            failures_before(pod) + 1
            for pod in pods
            if phase_of(pod) == "Failed" and meaning_of_failure(job, pod).action != IGNORE
        ),
        default=0,
    )


def find_success_rule(job: Object, done: set[int], listed: dict[int, set[int]]) -> int | None:
    """The first rule of the success policy that these finished indexes meet, or None.

    `listed` has the indexes that each rule names, where it names any.
    """
    rules = (job["spec"].get("successPolicy") or {}).get("rules") or ()
    for number, rule in enumerate(rules):
        among = listed.get(number)
        met = done if among is None else done & among
        count = rule.get("succeededCount")
        if count is None:
            count = len(among) if among is not None else job["spec"].get("completions") or 0
        if len(met) >= count:
            return number
    return None
