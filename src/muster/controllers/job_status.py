"""What a Job's pods amount to: each ended pod is counted exactly once, whatever happens in between.

An ended pod's uid is first written into `status.uncountedTerminatedPods`, then its tracking finalizer goes,
and only when that is gone is it added to the counters and forgotten.  In come Job and pods, out go a
`Tally` and from it the status to be written.  Next: `job.py`.
Source: the stock Job controller's tracking with finalizers (KEP-2307).
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from muster.controllers.job_pods import TRACKING, index_of, is_active, is_indexed
from muster.controllers.job_policies import (
    FAIL_INDEX,
    FAIL_JOB,
    IGNORE,
    failures_before,
    index_limit,
    meaning_of_failure,
)
from muster.controllers.objects import (
    has_condition,
    has_finalizer,
    is_deleting,
    is_terminal,
    phase_of,
    uid_of,
)
from muster.controllers.ports import Object

_UNCOUNTED_MAX = 500


class Tally(Struct):
    """Pods of a Job, counted.

    `succeeded` and `failed` are in the counters; the uids of `pending_*` are written down and not yet in
    them; `new_failed` and `new_succeeded` are those written down by this very count.  `ignored` are uids
    of ended pods that count for nothing, `fail_job` is why one failure fails the whole Job.
    """

    succeeded: int = 0
    failed: int = 0
    pending_succeeded: list[str] = []
    pending_failed: list[str] = []
    ignored: list[str] = []
    fail_job: str = ""
    done: set[int] = set()
    failed_indexes: set[int] = set()
    active: list[Object] = []
    ready: int = 0
    terminating: int = 0
    new_succeeded: int = 0
    new_failed: int = 0
    indexed: bool = False

    @property
    def total_succeeded(self) -> int:
        """All that succeeded, in the counters or on the way there."""
        return len(self.done) if self.indexed else self.succeeded + len(self.pending_succeeded)

    @property
    def total_failed(self) -> int:
        """All that failed, in the counters or on the way there."""
        return self.failed + len(self.pending_failed)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is running, ending or still to be counted."""
        return not (self.active or self.terminating or self.pending_succeeded or self.pending_failed)


def count(job: Object, pods: Iterable[Object]) -> Tally:
    """Count the pods into what the Job's status already says."""
    status = job.get("status") or {}
    waiting = status.get("uncountedTerminatedPods") or {}
    by_uid = {uid_of(pod): pod for pod in pods}
    tally = Tally(
        succeeded=status.get("succeeded") or 0,
        failed=status.get("failed") or 0,
        indexed=is_indexed(job),
        done=indexes_in(job, status.get("completedIndexes")),
        failed_indexes=indexes_in(job, status.get("failedIndexes")),
    )
    for uid in waiting.get("succeeded") or ():
        if _is_released(by_uid.get(uid)):
            tally.succeeded += 1
        else:
            tally.pending_succeeded.append(uid)
    for uid in waiting.get("failed") or ():
        if _is_released(by_uid.get(uid)):
            tally.failed += 1
        else:
            tally.pending_failed.append(uid)
    known = {*(waiting.get("succeeded") or ()), *(waiting.get("failed") or ())}
    for uid, pod in by_uid.items():
        _count_pod(tally, job, pod, known=uid in known)
    if tally.indexed:
        tally.succeeded = len(tally.done)
    return tally


def _count_pod(tally: Tally, job: Object, pod: Object, *, known: bool) -> None:
    if is_active(pod):
        tally.active.append(pod)
        tally.ready += has_condition(pod, "Ready")
    elif not is_terminal(pod):
        tally.terminating += 1
    if known or not has_finalizer(pod, TRACKING):
        return
    if len(tally.pending_succeeded) + len(tally.pending_failed) >= _UNCOUNTED_MAX:
        return
    if phase_of(pod) == "Succeeded":
        index = index_of(pod)
        if tally.indexed and index is not None and index < (job["spec"].get("completions") or 0):
            tally.done.add(index)
        tally.pending_succeeded.append(uid_of(pod))
        tally.new_succeeded += 1
    elif is_failed(pod, job):
        _count_failure(tally, job, pod)


def _count_failure(tally: Tally, job: Object, pod: Object) -> None:
    meaning = meaning_of_failure(job, pod)
    if meaning.action == IGNORE:
        tally.ignored.append(uid_of(pod))
        return
    tally.pending_failed.append(uid_of(pod))
    tally.new_failed += 1
    if meaning.action == FAIL_JOB:
        tally.fail_job = tally.fail_job or meaning.message
    limit, index = index_limit(job), index_of(pod)
    if limit is None or index is None:
        return
    if meaning.action == FAIL_INDEX or failures_before(pod) >= limit:
        tally.failed_indexes.add(index)


def is_failed(pod: Object, job: Object) -> bool:
    """Whether a pod counts as failed: it did, or it is being deleted and the Job replaces such at once."""
    if phase_of(pod) == "Failed":
        return True
    if job["spec"].get("podReplacementPolicy") == "Failed":
        return False
    return is_deleting(pod) and phase_of(pod) != "Succeeded"


def counted_status(job: Object, tally: Tally) -> dict[str, Any]:
    """The counting part of the status; None where the API leaves a field out."""
    pending = {
        "succeeded": tally.pending_succeeded or None,
        "failed": tally.pending_failed or None,
    }
    status: dict[str, Any] = {
        "active": len(tally.active) or None,
        "ready": tally.ready,
        "terminating": tally.terminating,
        "succeeded": tally.succeeded or None,
        "failed": tally.failed or None,
        "uncountedTerminatedPods": pending,
    }
    if tally.indexed:
        status["completedIndexes"] = format_indexes(tally.done) or None
    if index_limit(job) is not None:
        status["failedIndexes"] = format_indexes(tally.failed_indexes)
    return status


def indexes_in(job: Object, text: str | None) -> set[int]:
    """Read a list of the Job's indexes; those it does not have are left out."""
    return parse_indexes(text, below=job["spec"].get("completions") or 0)


def parse_indexes(text: str | None, *, below: int) -> set[int]:
    """Read `0-2,5` as {0, 1, 2, 5}; what cannot be read, or is not below `below`, is left out."""
    indexes: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            indexes.update(range(int(first), min(int(last or first) + 1, below)))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    """Write {0, 1, 2, 5} as `0-2,5`, and two neighbours as `0,1`, as stock does."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    words = {0: "{0}", 1: "{0},{1}"}
    return ",".join(words.get(last - first, "{0}-{1}").format(first, last) for first, last in runs)


def _is_released(pod: Object | None) -> bool:
    return pod is None or not has_finalizer(pod, TRACKING)
