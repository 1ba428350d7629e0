"""Job (batch/v1): pods to completion, on request as a gang (WorkloadWithJob)."""

from collections.abc import Iterable
from typing import Any

from muster.apiserver.kinds import Cause, Cluster, Object
from muster.apiserver.strategies.base import BaseStrategy
from muster.apiserver.strategies.fields import (
    IMMUTABLE,
    at_least_0,
    duplicate,
    invalid,
    items,
    keep_from,
    mapping,
    text,
)
from muster.apiserver.strategies.job_rules import (
    INDEXED,
    validate_gang_size,
    validate_indexes,
    validate_job_selector,
    validate_job_spec,
    validate_mode_fits,
    validate_scheduling,
)
from muster.apiserver.strategies.job_table import COLUMNS, job_cells
from muster.apiserver.strategies.names import dns_label, label_value
from muster.apiserver.strategies.pod_defaults import default_pod_spec
from muster.apiserver.strategies.policies import validate_unchanged
from muster.apiserver.strategies.printing import Column
from muster.apiserver.strategies.unions import validate_kept

INT32_MAX = 2**31 - 1
ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
    "them or set propagationPolicy=Orphan to suppress this warning"
)
_POLICY_FROZEN = (
    "the basic/gang policy variant is immutable after creation; only schedulingPolicy.gang.minCount may be "
    "updated"
)
_DIRECTIVES = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


class JobStrategy(BaseStrategy):
    """Labels and selector are generated; nearly everything is fixed once it runs."""

    has_status = True
    has_generation = True

    def default(self, obj: Object, cluster: Cluster) -> None:
        spec = obj["spec"]
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = spec["parallelism"] = 1
        if spec.get("parallelism") is None:
            spec["parallelism"] = 1
        if spec.get("backoffLimit") is None:
            spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else INT32_MAX
        if not spec.get("completionMode"):
            spec["completionMode"] = "NonIndexed"
        for key in ("suspend", "manualSelector"):
            if spec.get(key) is None:
                spec[key] = False
        policy = spec.get("podFailurePolicy")
        if spec.get("podReplacementPolicy") is None:
            spec["podReplacementPolicy"] = "TerminatingOrFailed" if policy is None else "Failed"
        for rule in items(policy or {}, "rules"):
            for pattern in items(rule, "onPodConditions"):
                pattern["status"] = pattern.get("status") or "True"
        default_pod_spec(spec["template"]["spec"])
        labels = mapping(mapping(spec["template"], "metadata"), "labels")
        if labels and not mapping(obj["metadata"], "labels"):
            obj["metadata"]["labels"] = dict(labels)

    def prepare_create(self, obj: Object, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        spec, meta = obj["spec"], obj["metadata"]
        if "WorkloadWithJob" not in cluster.gates:
            spec.pop("scheduling", None)
        if not spec["manualSelector"]:
            _generate_selector(spec, meta)
            # Stock copies them on reading, so a name too long for a label is told of the template only.
            if not mapping(meta, "labels") and not label_value(text(meta, "name")):
                meta["labels"] = dict(spec["template"]["metadata"]["labels"])

    def prepare_update(self, obj: Object, old: Object, sub: str, cluster: Cluster) -> None:
        gated = "WorkloadWithJob" not in cluster.gates and old["spec"].get("scheduling") is None
        if not sub and gated:
            obj["spec"].pop("scheduling", None)
        super().prepare_update(obj, old, sub, cluster)

    def validate_object(self, obj: Object, cluster: Cluster) -> list[Cause]:
        spec = obj["spec"]
        found = validate_job_spec(spec)
        found += validate_gang_size(spec)
        found += validate_mode_fits(spec)
        return found + validate_job_selector(obj, generated=True) + validate_scheduling(spec)

    def warnings(self, obj: Object) -> Iterable[str]:
        if problems := dns_label(text(obj["metadata"], "name")):
            yield (
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
                f"behavior; a DNS label is recommended: [{' '.join(problems)}]"
            )

    def validate_change(self, obj: Object, old: Object, cluster: Cluster) -> list[Cause]:
        spec, before = obj["spec"], old["spec"]
        found = validate_job_spec(spec) if spec != before else []
        found += validate_gang_size(spec)
        found += validate_job_selector(obj, generated=False)
        found += _validate_completions(spec, before)
        found += [
            invalid(f"spec.{key}", spec.get(key), IMMUTABLE)
            for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy")
            if (spec.get(key) != before.get(key))
        ]
        found += _validate_template_kept(spec, before, old)
        found += [
            invalid(f"spec.{key}", spec.get(key), IMMUTABLE)
            for key in ("successPolicy",)
            if spec.get(key) != before.get(key)
        ]
        return found + _validate_scheduling_change(spec, before)

    def validate_status(self, obj: Object, old: Object) -> list[Cause]:
        return validate_job_status(obj, old)

    def columns(self) -> tuple[Column, ...]:
        return COLUMNS

    def cells(self, obj: Object, cluster: Cluster) -> list[Any]:
        return job_cells(obj, cluster.now_s)


def _generate_selector(spec: Object, meta: Object) -> None:
    """Labels of the pods, and the selector that finds them, by the Job's uid."""
    uid, name = meta["uid"], meta.get("name", "")
    template_meta = spec["template"].get("metadata")
    template_meta = dict(template_meta) if isinstance(template_meta, dict) else {}
    labels = dict(mapping(template_meta, "labels"))
    for key, value in (("job-name", name), ("controller-uid", uid)):
        labels.setdefault(f"batch.kubernetes.io/{key}", value)
        labels.setdefault(key, value)
    template_meta["labels"] = labels
    spec["template"]["metadata"] = template_meta
    selector = spec.get("selector") or {}
    matched = {**mapping(selector, "matchLabels"), "batch.kubernetes.io/controller-uid": uid}
    spec["selector"] = {**selector, "matchLabels": matched}


def _validate_completions(spec: Object, before: Object) -> list[Cause]:
    new, old, path = spec.get("completions"), before.get("completions"), "spec.completions"
    if new == old:
        return []
    if spec.get("completionMode") != INDEXED or old is None or new is None:
        return [invalid(path, new, IMMUTABLE)]
    if old != before.get("parallelism") or new != spec.get("parallelism"):
        return [invalid(path, new, "can only be modified in tandem with spec.parallelism")]
    return []


def _validate_template_kept(spec: Object, before: Object, old: Object) -> list[Cause]:
    template, stored = mapping(spec, "template"), mapping(before, "template")
    if template == stored:
        return []
    if not (before.get("suspend") and mapping(old, "status").get("startTime") is None):
        return [invalid("spec.template", template, IMMUTABLE)]
    masked = dict(mapping(template, "spec"))
    for key in _DIRECTIVES:
        keep_from(masked, mapping(stored, "spec"), key)
    if masked != mapping(stored, "spec"):
        return [invalid("spec.template.spec", mapping(template, "spec"), IMMUTABLE)]
    return []


def _validate_scheduling_change(spec: Object, before: Object) -> list[Cause]:
    new, old, path = spec.get("scheduling"), before.get("scheduling"), "spec.scheduling"
    kept = validate_kept(path, new, old)
    if kept or new is None or old is None or new == old:
        return kept
    policy, old_policy = new.get("schedulingPolicy"), old.get("schedulingPolicy")
    found = validate_kept(f"{path}.schedulingPolicy", policy, old_policy)
    if not found and policy is not None and old_policy is not None:
        kinds = [{key for key in ("basic", "gang") if p.get(key) is not None} for p in (policy, old_policy)]
        if kinds[0] != kinds[1] and len(kinds[0]) == 1:
            return [invalid(f"{path}.schedulingPolicy", None, _POLICY_FROZEN)]
        found += validate_scheduling(spec)
    return found + validate_unchanged(
        path, new, old, "schedulingConstraints", "disruptionMode", "resourceClaims"
    )


_COUNTERS = ("active", "succeeded", "failed", "ready", "terminating")


def validate_job_status(obj: Object, old: Object) -> list[Cause]:
    """What a Job controller writes: counters that make sense, an end that stays."""
    status, before = mapping(obj, "status"), mapping(old, "status")
    found: list[Cause] = []
    for key in _COUNTERS:
        found += at_least_0(f"status.{key}", status.get(key))
    if (status.get("ready") or 0) > (status.get("active") or 0):
        found.append(invalid("status.ready", status["ready"], "cannot set more ready pods than active"))
    completions = mapping(obj, "spec").get("completions") or 0
    if indexes := text(status, "completedIndexes"):
        found += validate_indexes("status.completedIndexes", indexes, completions)
    if text(status, "failedIndexes") and mapping(obj, "spec").get("backoffLimitPerIndex") is None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        found.append(invalid("status.failedIndexes", status["failedIndexes"], detail))
    found += _validate_end(status, before)
    found += _validate_uncounted(status)
    started = before.get("startTime")
    if started and status.get("startTime") != started and not mapping(obj, "spec").get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        found.append(invalid("status.startTime", status.get("startTime"), detail))
    if (status.get("failed") or 0) < (before.get("failed") or 0):
        found.append(
            invalid("status.failed", status.get("failed") or 0, "cannot decrease the failed counter")
        )
    return found


def _validate_uncounted(status: Object) -> list[Cause]:
    """Pods that have ended and are not in the counters yet: each once, none when the Job is over."""
    uncounted, path = mapping(status, "uncountedTerminatedPods"), "status.uncountedTerminatedPods"
    found: list[Cause] = []
    seen: set[str] = set()
    for key in ("succeeded", "failed"):
        for index, uid in enumerate(items(uncounted, key)):
            if not uid:
                found.append(invalid(f"{path}.{key}[{index}]", uid, "must not be empty"))
            elif uid in seen:
                found.append(duplicate(f"{path}.{key}[{index}]", uid))
            seen.add(uid)
    if seen and (_true(status, "Complete") or _true(status, "Failed")):
        found.append(invalid(path, uncounted, "must be empty for finished job"))
    return found


def _true(status: Object, type_: str) -> bool:
    return any(c.get("type") == type_ and c.get("status") == "True" for c in items(status, "conditions"))


def _validate_end(status: Object, before: Object) -> list[Cause]:
    found: list[Cause] = []
    complete, completed_at = _true(status, "Complete"), status.get("completionTime")
    if complete and completed_at is None:
        detail = "completionTime is required for Complete jobs"
        found.append(Cause("status.completionTime", "FieldValueRequired", f"Required value: {detail}"))
    if completed_at is not None and not complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        found.append(invalid("status.completionTime", completed_at, detail))
    if completed_at is not None and complete and completed_at < (status.get("startTime") or ""):
        detail = "must be equal to or after `startTime`"
        found.append(invalid("status.completionTime", completed_at, detail))
    texts: list[str] = []
    if complete and not _true(status, "SuccessCriteriaMet"):
        texts.append("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if _true(status, "Failed") and not _true(status, "FailureTarget"):
        texts.append("cannot set Failed=True condition without the FailureTarget=true condition")
    for type_, what in (
        ("Complete", "terminal Complete=True"),
        ("Failed", "terminal Failed=True"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet=True"),
        ("FailureTarget", "FailureTarget=True"),
    ):
        if _true(before, type_) and not _true(status, type_):
            texts.append(f"cannot disable the {what} condition")
    found += [Cause("status.conditions", "FieldValueInvalid", f"Invalid value: {text_}") for text_ in texts]
    return found
