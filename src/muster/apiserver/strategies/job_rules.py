"""Validation of a Job's spec: counts, modes, policies, template, gang scheduling."""

import re

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    at_least_0,
    duplicate,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.groups import validate_claims
from muster.apiserver.strategies.metadata import validate_annotations, validate_labels
from muster.apiserver.strategies.names import dns_subdomain, path_segment
from muster.apiserver.strategies.pod_spec import validate_pod_spec
from muster.apiserver.strategies.policies import validate_constraints, validate_count, validate_mode
from muster.apiserver.strategies.selectors import selects, validate_selector
from muster.apiserver.strategies.unions import validate_union

INDEXED = "Indexed"
MODES = ("NonIndexed", INDEXED)
REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_INDEXED_MOST = 100_000
_MANAGED_BY_MOST = 63
_ALL_ON_BASIC = "the disruptionMode `all` is not supported with the Basic scheduling policy"
_NO_MATCH = "`selector` does not match template `labels`"
_SUCCEEDED = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def validate_job_spec(spec: Object) -> list[Cause]:
    """Everything that holds at creation and at update."""
    found: list[Cause] = []
    for key in _COUNTS:
        found += at_least_0(f"spec.{key}", spec.get(key))
    found += _validate_managed_by(spec)
    found += _validate_modes(spec)
    found += _validate_failure_policy(spec)
    found += _validate_success_policy(spec)
    found += validate_template("spec.template", mapping(spec, "template"))
    found += _validate_restart_policy(spec)
    return found


def validate_gang_size(spec: Object) -> list[Cause]:
    """`minCount` against `parallelism`; a Job's gang cannot be larger than the Job."""
    gang = mapping(mapping(mapping(spec, "scheduling"), "schedulingPolicy"), "gang")
    least, most = gang.get("minCount"), spec.get("parallelism")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        where = "spec.scheduling.schedulingPolicy.gang.minCount"
        return [invalid(where, least, f"must not be greater than parallelism ({most})")]
    return []


def validate_scheduling(spec: Object) -> list[Cause]:
    """`spec.scheduling` by itself."""
    scheduling = spec.get("scheduling")
    if scheduling is None:
        return []
    path = "spec.scheduling"
    found: list[Cause] = []
    policy = scheduling.get("schedulingPolicy")
    if policy is not None:
        found += validate_union(f"{path}.schedulingPolicy", policy, ("basic", "gang"))
        where = f"{path}.schedulingPolicy.gang.minCount"
        found += validate_count(where, mapping(policy, "gang").get("minCount"), zero_is_absent=False)
    found += validate_constraints(f"{path}.schedulingConstraints", scheduling.get("schedulingConstraints"))
    found += validate_mode(f"{path}.disruptionMode", scheduling.get("disruptionMode"))
    return found + validate_claims(f"{path}.resourceClaims", items(scheduling, "resourceClaims"))


def validate_mode_fits(spec: Object) -> list[Cause]:
    """The whole group can be one unit of disruption only if it is scheduled as one."""
    scheduling = mapping(spec, "scheduling")
    whole = mapping(scheduling, "disruptionMode").get("all") is not None
    alone = mapping(scheduling, "disruptionMode").get("single") is None
    gang = mapping(scheduling, "schedulingPolicy").get("gang") is not None
    if whole and alone and not gang:
        return [invalid("spec.scheduling.disruptionMode", "", _ALL_ON_BASIC)]
    return []


def _validate_managed_by(spec: Object) -> list[Cause]:
    name, path = spec.get("managedBy"), "spec.managedBy"
    if name is None:
        return []
    prefix, slash, rest = name.partition("/")
    found: list[Cause] = []
    if not slash or not prefix or not rest:
        return [invalid(path, name, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found += invalid_each(path, prefix, dns_subdomain(prefix))
    found += invalid_each(path, rest, [d for part in rest.split("/") for d in path_segment(part)])
    if len(name) > _MANAGED_BY_MOST:
        found.append(
            Cause(path, "FieldValueTooLong", f"Too long: may not be more than {_MANAGED_BY_MOST} bytes")
        )
    return found


def _validate_modes(spec: Object) -> list[Cause]:
    mode, found = spec.get("completionMode"), list[Cause]()
    if mode not in MODES:
        found.append(not_supported("spec.completionMode", mode, MODES))
    if mode == INDEXED:
        if spec.get("completions") is None:
            found.append(required("spec.completions", f"when completion mode is {INDEXED}"))
        found += _validate_indexed_sizes(spec)
    else:
        found += [
            invalid(f"spec.{key}", spec[key], "requires indexed completion mode")
            for key in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(key) is not None
        ]
    replacement = spec.get("podReplacementPolicy")
    known = ("Failed",) if spec.get("podFailurePolicy") is not None else REPLACEMENTS
    if replacement is not None and replacement not in known:
        found.append(not_supported("spec.podReplacementPolicy", replacement, known))
    return found


def _validate_indexed_sizes(spec: Object) -> list[Cause]:
    found: list[Cause] = []
    if (spec.get("parallelism") or 0) > _INDEXED_MOST:
        detail = f"must be less than or equal to {_INDEXED_MOST} when completion mode is {INDEXED}"
        found.append(invalid("spec.parallelism", spec["parallelism"], detail))
    if spec.get("maxFailedIndexes") is not None:
        if spec.get("backoffLimitPerIndex") is None:
            found.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
        completions = spec.get("completions")
        if completions is not None and spec["maxFailedIndexes"] > completions:
            detail = "must be less than or equal to completions"
            found.append(invalid("spec.maxFailedIndexes", spec["maxFailedIndexes"], detail))
    return found


def _validate_failure_policy(spec: Object) -> list[Cause]:
    policy = spec.get("podFailurePolicy")
    if not isinstance(policy, dict):
        return []
    found: list[Cause] = []
    for index, rule in enumerate(items(policy, "rules")):
        here = f"spec.podFailurePolicy.rules[{index}]"
        action, codes = rule.get("action"), rule.get("onExitCodes")
        if action not in _ACTIONS:
            found.append(not_supported(f"{here}.action", action, _ACTIONS))
        if isinstance(codes, dict):
            found += _validate_codes(f"{here}.onExitCodes", codes)
        if codes is None and not items(rule, "onPodConditions"):
            detail = "specifying one of OnExitCodes and OnPodConditions is required"
            found.append(Cause(here, "FieldValueInvalid", f"Invalid value: {detail}"))
    return found


def _validate_codes(path: str, codes: Object) -> list[Cause]:
    found: list[Cause] = []
    values, seen = items(codes, "values"), set[int]()
    if text(codes, "operator") not in ("In", "NotIn"):
        found.append(not_supported(f"{path}.operator", codes.get("operator"), ("In", "NotIn")))
    if not values:
        found.append(invalid(f"{path}.values", values, "at least one value is required"))
    for index, value in enumerate(values):
        if value == 0 and codes.get("operator") == "In":
            found.append(invalid(f"{path}.values[{index}]", 0, "must not be 0 for the In operator"))
        if value in seen:
            found.append(duplicate(f"{path}.values[{index}]", value))
        seen.add(value)
    return found


def _validate_success_policy(spec: Object) -> list[Cause]:
    policy = spec.get("successPolicy")
    if not isinstance(policy, dict):
        return []
    if spec.get("completionMode") != INDEXED:
        return [invalid("spec.successPolicy", policy, "requires indexed completion mode")]
    if not items(policy, "rules"):
        return [required("spec.successPolicy.rules", "at least one rules must be specified")]
    found: list[Cause] = []
    completions = spec.get("completions") or 0
    for index, rule in enumerate(items(policy, "rules")):
        here = f"spec.successPolicy.rules[{index}]"
        count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            found.append(required(here, detail))
        if indexes is not None:
            found += validate_indexes(f"{here}.succeededIndexes", indexes, completions)
        found += at_least_0(f"{here}.succeededCount", count)
        if isinstance(count, int) and count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            found.append(invalid(f"{here}.succeededCount", count, detail))
    return found


def validate_indexes(path: str, indexes: str, completions: int) -> list[Cause]:
    """Text such as `1,3-5`: rising numbers below `completions`."""
    field = path.rsplit(".", 1)[-1]
    if not indexes:
        return []
    last = -1
    for interval in indexes.split(","):
        for part in interval.split("-", 1):
            if not part.isascii() or not part.isdigit():
                detail = f'error parsing {field}: cannot convert string to integer for index: "{part}"'
                return [invalid(path, indexes, detail)]
            number = int(part[:20])
            if number >= completions:
                detail = f'error parsing {field}: too large index: "{part}"'
                return [invalid(path, indexes, detail)]
            if number <= last:
                detail = f"error parsing {field}: non-increasing order, previous: {last}, current: {number}"
                return [invalid(path, indexes, detail)]
            last = number
    return []


def validate_template(path: str, template: Object) -> list[Cause]:
    """Labels, annotations and spec of the pods to come."""
    meta = mapping(template, "metadata")
    found = validate_labels(f"{path}.labels", mapping(meta, "labels"))
    found += validate_annotations(f"{path}.annotations", mapping(meta, "annotations"))
    return found + validate_pod_spec(f"{path}.spec", mapping(template, "spec"))


def _validate_restart_policy(spec: Object) -> list[Cause]:
    policy = mapping(mapping(spec, "template"), "spec").get("restartPolicy")
    path = "spec.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def validate_job_selector(obj: Object, *, generated: bool) -> list[Cause]:
    """The selector and the template's labels belong together; `generated` asks for those of the Job's uid."""
    spec, meta = obj["spec"], obj["metadata"]
    labels = mapping(mapping(mapping(spec, "template"), "metadata"), "labels")
    selector = spec.get("selector")
    found: list[Cause] = []
    if selector is None:
        found.append(required("spec.selector"))
    else:
        found += validate_selector("spec.selector", selector)
    if generated and not spec.get("manualSelector"):
        found += _validate_generated(meta, spec, labels)
    if selector is None or not selects(selector, labels):
        found.append(invalid("spec.template.metadata.labels", labels or None, _NO_MATCH))
    return found


def _validate_generated(meta: Object, spec: Object, labels: Object) -> list[Cause]:
    uid, name = text(meta, "uid"), text(meta, "name")
    wanted = {"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid}
    wanted |= {"job-name": name, "batch.kubernetes.io/job-name": name}
    found: list[Cause] = []
    for key in wanted:
        if labels.get(key) != wanted[key]:
            where = f"spec.template.metadata.labels[{key}]"
            found.append(invalid(where, labels, f"must be '{wanted[key]}'"))
    generated = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    old_style = {"matchLabels": {"controller-uid": uid}}
    if spec.get("selector") is not None and spec["selector"] not in (generated, old_style):
        found.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return found
