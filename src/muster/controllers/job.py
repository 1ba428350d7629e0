"""The Job controller: pods as the Job wants them, its groups, its status, and its end.

Each look at a Job: ① its Workload and group ② count its pods ③ has it come to an end? ④ remove or make
pods ⑤ write the status ⑥ let go of the pods written down there.  Jobs managed by somebody else are left
alone.  Behaviour and words are the stock controller's; where it errs (names that the API refuses, a
minCount above `completions`) see `job_groups.py`.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple

from muster.controllers.job_groups import Made, Membership, ensure_group
from muster.controllers.job_pods import (
    TRACKING,
    first_to_go,
    free_indexes,
    index_of,
    is_indexed,
    make_pod,
    pods_of,
)
from muster.controllers.job_policies import failures_so_far, find_success_rule, index_limit
from muster.controllers.job_status import Tally, count, counted_status, indexes_in
from muster.controllers.objects import (
    controller_of,
    find_condition,
    has_condition,
    has_finalizer,
    is_deleting,
    name_of,
    namespace_of,
    rfc3339,
    seconds_of,
    uid_of,
    with_condition,
    without_finalizer,
)
from muster.controllers.ports import (
    JOBS,
    POD_GROUPS,
    PODS,
    WORKLOADS,
    Ask,
    Object,
    Seen,
    View,
    Wake,
    Write,
)
from muster.controllers.reconciler import Key, Reconciler

MANAGER = "kubernetes.io/job-controller"
_BACKOFF_S_INITIAL = 10.0
_BACKOFF_S_MAX = 600.0
_PODS_PER_LOOK = 200
_BACKOFF_LIMIT = 6
_CREATED = {WORKLOADS: ("WorkloadCreated", "Workload"), POD_GROUPS: ("PodGroupCreated", "PodGroup")}
_NOT_CREATED = {
    WORKLOADS: ("FailedWorkloadCreate", "Failed to create Workload for Job {job}: {message}"),
    POD_GROUPS: ("FailedPodGroupCreate", "Failed to create PodGroup for Job {job}: {message}"),
    PODS: ("FailedCreate", "Error creating: {message}"),
}


class _End(NamedTuple):
    """How a Job comes to its end: the condition that announces it, the one that states it, and why."""

    interim: str
    final: str
    reason: str
    message: str


_COMPLETE = _End(
    "SuccessCriteriaMet", "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
)
_BACKOFF = _End(
    "FailureTarget", "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
)
_DEADLINE = _End(
    "FailureTarget", "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
)

_FAILED_INDEXES = _End("FailureTarget", "Failed", "FailedIndexes", "Job has failed indexes")
_TOO_MANY_INDEXES = _End(
    "FailureTarget",
    "Failed",
    "MaxFailedIndexesExceeded",
    "Job has exceeded the specified maximal number of failed indexes",
)


class Jobs(Reconciler):
    """Runs Jobs; a key is ("job", namespace, name), or ("pod", namespace, name) of a pod without its Job."""

    name = "job-controller"
    kinds = (JOBS, PODS, WORKLOADS, POD_GROUPS)

    def __init__(self) -> None:
        super().__init__()
        self._failures: dict[str, tuple[int, float]] = {}  # Job uid → failures in a row, last of them

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        obj = change.object
        if change.kind == JOBS:
            if change.after is not None:
                return (("job", namespace_of(obj), name_of(obj)),)
            self._failures.pop(uid_of(obj), None)
            dependents = view.dependents(uid_of(obj))
            return tuple(_pod_key(pod) for kind, pod in dependents if kind == PODS)
        if change.kind == PODS:
            return self._pod_keys(change, view)
        if change.kind in (WORKLOADS, POD_GROUPS):
            owner = controller_of(obj)
            if owner is not None and owner.get("kind") == "Job":
                return (("job", namespace_of(obj), str(owner["name"])),)
        return ()

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        what, namespace, name = key
        if what == "pod":
            yield from _release_orphan(view.get(PODS, namespace, name), view)
            return
        job = view.get(JOBS, namespace, name)
        if job is None or job["spec"].get("managedBy", MANAGER) != MANAGER:
            return
        if has_condition(job, "Complete") or has_condition(job, "Failed"):
            yield from _expire(job, now_s)
            return
        yield from self._sync(job, view, now_s)

    def failed(self, write: Write, code: int, message: str, view: View, now_s: float) -> Iterator[Ask]:
        """Say on the Job what could not be made for it, and try again later."""
        words = _NOT_CREATED.get(write.kind) if write.verb == "create" else None
        job = view.get(JOBS, *write.about[1:]) if words is not None else None
        if words is not None and job is not None:
            text = words[1].format(job=name_of(job), message=message)
            yield self.event(job, "Warning", words[0], text, now_s)
        yield from super().failed(write, code, message, view, now_s)

    def _pod_keys(self, change: Seen, view: View) -> tuple[Key, ...]:
        keys: dict[Key, None] = {}
        for pod in (change.before, change.after):
            owner = controller_of(pod) if pod is not None else None
            if owner is not None and owner.get("kind") == "Job":
                keys["job", namespace_of(change.object), str(owner["name"])] = None
        after = change.after
        if after is not None and has_finalizer(after, TRACKING) and _job_of(after, view) is None:
            keys[_pod_key(after)] = None
        return tuple(keys)

    def _sync(self, job: Object, view: View, now_s: float) -> Iterator[Ask]:
        # ① its Workload and group
        membership = Membership()
        if not is_deleting(job) and _end_announced(job) is None:
            membership = yield from self._group(job, view, now_s)
            if not membership.ready and not (job.get("status") or {}).get("startTime"):
                return
        # ② count its pods
        tally = count(job, pods_of(job, view))
        self._note_failures(job, tally, now_s)
        # ③ has it come to an end?
        end = _end_announced(job) or _end_reached(job, tally, now_s)
        # ④ remove or make pods
        if not is_deleting(job):
            yield from self._manage(job, tally, end, membership, view, now_s)
            tally = count(job, pods_of(job, view))
        # ⑤ write the status
        status = _next_status(job, tally, end, now_s)
        if _differs(job, status):
            body = {
                "metadata": {"resourceVersion": job["metadata"]["resourceVersion"]},
                "status": status,
            }
            yield Write("patch", JOBS, namespace_of(job), name_of(job), body, "status", uid_of(job))
        stored = view.get(JOBS, namespace_of(job), name_of(job))
        if stored is None or _differs(stored, status):
            return
        yield from self._tell(job, stored, now_s)
        # ⑥ let go of the pods written down there
        written = {*tally.pending_succeeded, *tally.pending_failed, *tally.ignored}
        for pod in pods_of(stored, view):
            if uid_of(pod) in written and has_finalizer(pod, TRACKING):
                yield _release(pod)
        deadline_s = _deadline_s(stored)
        if deadline_s is not None and end is None:
            yield Wake(deadline_s)

    def _group(self, job: Object, view: View, now_s: float) -> Generator[Ask, None, Membership]:
        steps = ensure_group(job, view)
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                membership: Membership = end.value
                return membership
            if isinstance(step, Made):
                reason, kind = _CREATED[step.kind]
                text = f"Created {kind} {step.name} for Job {name_of(job)}"
                yield self.event(job, "Normal", reason, text, now_s)
            else:
                yield step

    def _note_failures(self, job: Object, tally: Tally, now_s: float) -> None:
        if tally.new_succeeded:
            self._failures.pop(uid_of(job), None)
        elif tally.new_failed:
            failures, _ = self._failures.get(uid_of(job), (0, 0.0))
            self._failures[uid_of(job)] = (failures + tally.new_failed, now_s)

    # ── pods ──

    def _manage(
        self,
        job: Object,
        tally: Tally,
        end: _End | None,
        membership: Membership,
        view: View,
        now_s: float,
    ) -> Iterator[Ask]:
        if end is not None:
            yield from self._remove(job, tally.active, now_s, counted=end.final == "Failed")
            return
        if job["spec"].get("suspend"):
            yield from self._remove(job, tally.active, now_s, counted=False)
            return
        wanted = _wanted(job, tally)
        excess = len(tally.active) - wanted
        if excess > 0:
            yield from self._remove(job, first_to_go(tally.active, excess), now_s, counted=False)
            return
        missing = wanted - len(tally.active)
        if job["spec"].get("podReplacementPolicy") == "Failed":
            missing -= tally.terminating
        if missing <= 0 or not membership.ready:
            return
        failures, failed_s = self._failures.get(uid_of(job), (0, 0.0))
        if failures:
            delay_s = min(_BACKOFF_S_INITIAL * 2 ** min(failures - 1, 10), _BACKOFF_S_MAX)
            if now_s < failed_s + delay_s:
                yield Wake(failed_s + delay_s)
                return
        yield from self._make(job, tally, missing, membership, view, now_s)

    def _make(
        self, job: Object, tally: Tally, missing: int, membership: Membership, view: View, now_s: float
    ) -> Iterator[Ask]:
        before = pods_of(job, view)
        known = {uid_of(pod) for pod in before}
        batch = min(missing, _PODS_PER_LOOK)
        key = ("job", namespace_of(job), name_of(job))
        refusals = self._keys.failures(key)
        indexes: list[int | None] = [None] * batch
        if is_indexed(job):
            indexes = list(free_indexes(job, before, tally.done | tally.failed_indexes, batch))
        for index in indexes:
            failures = 0
            if index_limit(job) is not None:
                failures = failures_so_far(job, (pod for pod in before if index_of(pod) == index))
            pod = make_pod(job, membership.group, index, failures)
            yield Write("create", PODS, namespace_of(job), "", pod)
            if self._keys.failures(key) > refusals:
                break  # what refused this one would refuse the others
        made = [pod for pod in pods_of(job, view) if uid_of(pod) not in known]
        for pod in made:
            text = f"Created pod: {name_of(pod)}"
            yield self.event(job, "Normal", "SuccessfulCreate", text, now_s)
        if len(made) == len(indexes) and missing > batch:
            yield Wake(now_s)

    def _remove(self, job: Object, pods: Iterable[Object], now_s: float, *, counted: bool) -> Iterator[Ask]:
        """Delete pods; those that shall not count as failed are let go of first."""
        for pod in pods:
            if not counted and has_finalizer(pod, TRACKING):
                yield _release(pod)
            yield Write("delete", PODS, namespace_of(pod), name_of(pod), {}, uid=uid_of(pod))
            text = f"Deleted pod: {name_of(pod)}"
            yield self.event(job, "Normal", "SuccessfulDelete", text, now_s)

    # ── words ──

    def _tell(self, before: Object, after: Object, now_s: float) -> Iterator[Ask]:
        """Events for the conditions that have just been written."""
        for type_, status, reason, text in (
            ("Suspended", "True", "Suspended", "Job suspended"),
            ("Suspended", "False", "Resumed", "Job resumed"),
            ("Complete", "True", "Completed", "Job completed"),
        ):
            if has_condition(after, type_, status) and not has_condition(before, type_, status):
                yield self.event(after, "Normal", reason, text, now_s)
        failed = find_condition(after, "Failed")
        if failed is not None and find_condition(before, "Failed") is None:
            yield self.event(after, "Warning", failed["reason"], failed["message"], now_s)


def _wanted(job: Object, tally: Tally) -> int:
    """How many pods should be at work now."""
    parallelism = job["spec"].get("parallelism")
    parallelism = 1 if parallelism is None else int(parallelism)
    completions = job["spec"].get("completions")
    if completions is None:
        return len(tally.active) if tally.total_succeeded else parallelism
    ended = tally.total_succeeded + len(tally.failed_indexes)
    return max(0, min(parallelism, int(completions) - ended))


# ── the end ──


def _end_announced(job: Object) -> _End | None:
    for interim, final in (("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete")):
        condition = find_condition(job, interim)
        if condition is not None and condition.get("status") == "True":
            words = (str(condition.get("reason") or ""), str(condition.get("message") or ""))
            return _End(interim, final, *words)
    return None


def _end_reached(job: Object, tally: Tally, now_s: float) -> _End | None:
    spec = job["spec"]
    limit = spec.get("backoffLimit")
    if tally.total_failed > (_BACKOFF_LIMIT if limit is None else limit):
        return _BACKOFF
    deadline_s = _deadline_s(job)
    if deadline_s is not None and now_s >= deadline_s and not spec.get("suspend"):
        return _DEADLINE
    if tally.fail_job:
        return _End("FailureTarget", "Failed", "PodFailurePolicy", tally.fail_job)
    return _indexes_ended(job, tally) or _completed(job, tally)


def _indexes_ended(job: Object, tally: Tally) -> _End | None:
    """The end of an Indexed Job by its failed indexes or its success policy."""
    if not tally.indexed:
        return None
    spec = job["spec"]
    rules = (spec.get("successPolicy") or {}).get("rules") or ()
    listed = {
        number: indexes_in(job, rule["succeededIndexes"])
        for number, rule in enumerate(rules)
        if rule.get("succeededIndexes")
    }
    met = find_success_rule(job, tally.done, listed)
    if met is not None:
        return _End("SuccessCriteriaMet", "Complete", "SuccessPolicy", f"Matched rules at index {met}")
    failed = len(tally.failed_indexes)
    limit = spec.get("maxFailedIndexes")
    if limit is not None and failed > limit:
        return _TOO_MANY_INDEXES
    if failed and failed + len(tally.done) >= (spec.get("completions") or 0):
        return _FAILED_INDEXES
    return None


def _completed(job: Object, tally: Tally) -> _End | None:
    completions = job["spec"].get("completions")
    if completions is None:
        return _COMPLETE if tally.total_succeeded and not tally.active else None
    return _COMPLETE if tally.total_succeeded >= completions and not job["spec"].get("suspend") else None


def _deadline_s(job: Object) -> float | None:
    seconds = job["spec"].get("activeDeadlineSeconds")
    started_s = seconds_of((job.get("status") or {}).get("startTime"))
    return None if seconds is None or started_s is None else started_s + seconds


def _expire(job: Object, now_s: float) -> Iterator[Ask]:
    """Delete a finished Job when its time to live has passed."""
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_s is None or is_deleting(job):
        return
    condition = find_condition(job, "Complete") or find_condition(job, "Failed") or {}
    expires_s = (seconds_of(condition.get("lastTransitionTime")) or now_s) + ttl_s
    if now_s < expires_s:
        yield Wake(expires_s)
        return
    options = {"propagationPolicy": "Foreground"}
    yield Write("delete", JOBS, namespace_of(job), name_of(job), options, uid=uid_of(job))


# ── the status ──


def _next_status(job: Object, tally: Tally, end: _End | None, now_s: float) -> dict[str, Any]:
    status = counted_status(job, tally)
    current = job.get("status") or {}
    suspended = bool(job["spec"].get("suspend"))
    if end is not None:
        status["conditions"] = _end_conditions(job, tally, end, now_s)
        if current.get("startTime") is None:
            status["startTime"] = rfc3339(now_s)
        if end.final == "Complete" and tally.is_settled:
            status["completionTime"] = rfc3339(now_s)
        return status
    if is_deleting(job):
        return status
    if suspended:
        status["startTime"] = None
        status["conditions"] = _condition(job, "Suspended", "True", "JobSuspended", "Job suspended", now_s)
        return status
    if has_condition(job, "Suspended"):
        status["conditions"] = _condition(job, "Suspended", "False", "JobResumed", "Job resumed", now_s)
    if current.get("startTime") is None:
        status["startTime"] = rfc3339(now_s)
    return status


def _end_conditions(job: Object, tally: Tally, end: _End, now_s: float) -> list[Object]:
    conditions = _condition(job, end.interim, "True", end.reason, end.message, now_s)
    if tally.is_settled:
        announced = {**job, "status": {**(job.get("status") or {}), "conditions": conditions}}
        conditions = _condition(announced, end.final, "True", end.reason, end.message, now_s)
    return conditions


def _condition(job: Object, type_: str, status: str, reason: str, message: str, now_s: float) -> list[Object]:
    words = {"type": type_, "status": status, "reason": reason, "message": message}
    before = find_condition(job, type_)
    if before is not None and all(before.get(field) == text for field, text in words.items()):
        return list(job["status"]["conditions"])
    return with_condition(job, {**words, "lastProbeTime": rfc3339(now_s)}, now_s)


def _differs(job: Object, status: dict[str, Any]) -> bool:
    current = job.get("status") or {}
    for field, value in status.items():
        have = current.get(field)
        if field == "uncountedTerminatedPods":
            have = have or {}
            value = {name: uids for name, uids in value.items() if uids}
        if have != value:
            return True
    return False


# ── letting go ──


def _release(pod: Object) -> Write:
    patch = without_finalizer(pod, TRACKING)
    return Write("patch", PODS, namespace_of(pod), name_of(pod), patch, uid=uid_of(pod))


def _release_orphan(pod: Object | None, view: View) -> Iterator[Ask]:
    if pod is not None and has_finalizer(pod, TRACKING) and _job_of(pod, view) is None:
        yield _release(pod)


def _job_of(pod: Object, view: View) -> Object | None:
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != "Job":
        return None
    job = view.get(JOBS, namespace_of(pod), str(owner["name"]))
    return job if job is not None and uid_of(job) == owner.get("uid") else None


def _pod_key(pod: Object) -> Key:
    return ("pod", namespace_of(pod), name_of(pod))
