"""What a cluster lacks for Muster, in plain words: the findings of `muster check`.

In comes an `ApiClient`; out come `Finding`s in the order in which a user would mend them.  Nothing is
written: the one request that would, a pod that names a group, is a dry run.  Next: `cli/check.py`.
"""

import itertools
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct

from muster.api.times import parse_seconds
from muster.assembly.leadership import NAMESPACE, Lease
from muster.assembly.requests import path_of
from muster.base.errors import ApiError
from muster.controllers.ports import LEASES, PODS, Kind
from muster.runtime.client import ApiClient

GROUP_VERSION = "scheduling.k8s.io/v1beta1"
GATE_FLAG = "--feature-gates=GenericWorkload=true"
API_FLAG = f"--runtime-config={GROUP_VERSION}=true"
STOCK_NAME, STOCK_LEASE = "default-scheduler", "kube-scheduler"
RECENT_S = 30.0
CLOCKS_APART_S_MAX = 30.0

_EVENTS = Kind("events.k8s.io", "v1", "events")
_REVIEWS = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews")

# What `muster run` does: group, resource, verbs, and the sentence for a user who may not.
RIGHTS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("", "nodes", ("list", "watch"), "see where there is room"),
    ("", "namespaces", ("list", "watch"), "follow rules with a namespace selector"),
    ("", "pods", ("list", "watch"), "see what waits and what runs"),
    ("", "pods", ("get",), "tell whether a binding with a lost answer has landed"),
    ("scheduling.k8s.io", "podgroups", ("list", "watch"), "see the groups"),
    ("scheduling.k8s.io", "compositepodgroups", ("list", "watch"), "see trees of groups"),
    ("policy", "poddisruptionbudgets", ("list", "watch"), "spare what disruption budgets protect"),
    ("", "persistentvolumeclaims", ("list", "watch"), "see which volumes pods ask for"),
    ("", "persistentvolumes", ("list", "watch"), "see which nodes reach a volume"),
    ("storage.k8s.io", "storageclasses", ("list", "watch"), "see how volumes come to be"),
    ("storage.k8s.io", "csinodes", ("list", "watch"), "see how many volumes a node attaches"),
    ("storage.k8s.io", "csidrivers", ("list", "watch"), "see which drivers count their room"),
    ("storage.k8s.io", "csistoragecapacities", ("list", "watch"), "see where volumes can still be made"),
    ("storage.k8s.io", "volumeattachments", ("list", "watch"), "see which volumes a node still has attached"),
    ("", "persistentvolumes", ("patch",), "give a volume to a claim"),
    ("", "persistentvolumeclaims", ("patch",), "have a volume made where the pod will be"),
    ("resource.k8s.io", "deviceclasses", ("list", "watch"), "see which kinds of devices there are"),
    ("resource.k8s.io", "resourceslices", ("list", "watch"), "see which devices nodes have"),
    ("resource.k8s.io", "devicetaintrules", ("list", "watch"), "see which devices are not to be given"),
    ("resource.k8s.io", "resourceclaims", ("list", "watch"), "see which devices pods ask for and have"),
    ("resource.k8s.io", "resourceclaims", ("patch",), "protect claims that have devices"),
    ("resource.k8s.io", "resourceclaims", ("create", "delete"), "have devices for extended resources"),
    ("resource.k8s.io", "resourceclaims/status", ("patch",), "give devices to claims"),
    ("resource.k8s.io", "resourceclaims/binding", ("patch",), "say which devices a claim has, and for whom"),
    ("", "pods/binding", ("create",), "bind pods to nodes"),
    ("", "pods/status", ("patch",), "say on a pod why it waits"),
    ("", "pods", ("delete",), "make room for what is more important"),
    ("scheduling.k8s.io", "podgroups/status", ("patch",), "say on a group whether it was placed"),
    ("events.k8s.io", "events", ("create",), "write events"),
    ("coordination.k8s.io", "leases", ("get", "create", "update"), "be the only one of its name"),
)


class Level(Enum):
    """How a finding counts: only what is missing makes `muster check` fail."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Finding(Struct, frozen=True):
    """One thing looked at; `cure` says what to do about it."""

    check: str
    level: Level
    text: str
    cure: str = ""


class Resource(Struct):
    name: str = ""


class ResourceList(Struct):
    resources: list[Resource] = []


class ProbedSpec(Struct, rename="camel"):
    scheduling_group: dict[str, Any] | None = None


class Probed(Struct):
    """A pod, of which only the group it names matters."""

    spec: ProbedSpec


class Allowed(Struct):
    allowed: bool = False


class Review(Struct):
    status: Allowed = msgspec.field(default_factory=Allowed)


class WrittenEvent(Struct, rename="camel"):
    event_time: str | None = None
    reporting_controller: str | None = None
    reporting_instance: str | None = None


class EventList(Struct):
    items: list[WrittenEvent] | None = None


async def inspect(
    client: ApiClient,
    *,
    scheduler_names: tuple[str, ...],
    now_s: Callable[[], float],
    namespace: str = "default",
    lease_namespace: str = NAMESPACE,
) -> list[Finding]:
    """Look at everything.  Raises ConfigError if the server cannot be reached at all."""
    version, clock_ahead_s = await client.check_connection()
    findings = [Finding("version", Level.OK, f"{client.server} is Kubernetes {version}")]
    findings += judge_clock(clock_ahead_s)
    findings += await _look_at_api(client, namespace)
    findings += await _look_at_rights(client, lease_namespace, scheduler_names)
    for name in scheduler_names:
        findings += await _look_for_rivals(client, name, lease_namespace, now_s())
    return findings


def judge_clock(ahead_s: float | None) -> Iterable[Finding]:
    """Say whether this machine's clock and the server's agree, `ahead_s` being how far ours is ahead.

    How long a gang has held room is told from times that the server wrote; nothing where it gives no time.
    """
    if ahead_s is None:
        return
    if abs(ahead_s) <= CLOCKS_APART_S_MAX:
        yield Finding("clock", Level.OK, "this machine's clock agrees with the server's")
        return
    where, when = ("ahead of", "early") if ahead_s > 0.0 else ("behind", "late")
    yield Finding(
        "clock",
        Level.MISSING,
        f"this machine's clock is {abs(ahead_s):.0f} s {where} the server's, so gangs that an earlier Muster"
        f" left under way would be released too {when}",
        "have both machines set their clocks by NTP",
    )


# ── the API and its gate ─────────────────────────────────────────────────────────────────────────


async def _look_at_api(client: ApiClient, namespace: str) -> list[Finding]:
    is_served = await _is_served(client)
    is_on, doubt = await _is_gate_on(client, namespace)
    return list(judge_api(is_served=is_served, is_gate_on=is_on, doubt=doubt))


def judge_api(*, is_served: bool, is_gate_on: bool | None, doubt: str = "") -> Iterable[Finding]:
    """Say what the two switches of the apiserver, seen from outside, mean together."""
    off = "both are off unless asked for in 1.37, though they are beta"
    everywhere = "set the gate on kube-controller-manager too, or deleted groups never go"
    if not is_served and is_gate_on is False:
        yield Finding(
            "api",
            Level.MISSING,
            f"this cluster knows no pod groups: {GROUP_VERSION} is not served and the feature gate"
            f" GenericWorkload is off; {off}",
            f"start kube-apiserver with {GATE_FLAG} and {API_FLAG}; {everywhere}",
        )
        return
    if is_served:
        yield Finding("api", Level.OK, f"{GROUP_VERSION} is served, with podgroups and workloads")
    else:
        gate = "the feature gate GenericWorkload is on, but " if is_gate_on else ""
        yield Finding(
            "api",
            Level.MISSING,
            f"{gate}{GROUP_VERSION} is not served; beta APIs are off unless asked for",
            f"start kube-apiserver with {API_FLAG}",
        )
    if is_gate_on:
        yield Finding("gate", Level.OK, "pods keep spec.schedulingGroup: GenericWorkload is on")
    elif is_gate_on is None:
        yield Finding("gate", Level.UNKNOWN, f"whether pods keep spec.schedulingGroup was not tried: {doubt}")
    else:
        yield Finding(
            "gate",
            Level.MISSING,
            f"{GROUP_VERSION} is served, but the feature gate GenericWorkload is off: spec.schedulingGroup of"
            " new pods is dropped without a word, and each pod is scheduled alone",
            f"start kube-apiserver with {GATE_FLAG}; {everywhere}",
        )


async def _is_served(client: ApiClient) -> bool:
    try:
        answer = await client.call("GET", f"/apis/{GROUP_VERSION}")
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    served = {resource.name for resource in answer.read(ResourceList).resources}
    return {"podgroups", "podgroups/status"} <= served


async def _is_gate_on(client: ApiClient, namespace: str) -> tuple[bool | None, str]:
    """Create a pod that names a group, as a dry run, and see whether the name comes back."""
    try:
        answer = await client.call("POST", path_of(PODS, namespace), probe_pod(), query={"dryRun": "All"})
    except ApiError as error:
        return None, f"a dry run of creating a pod in namespace {namespace} was refused: {error}"
    return bool(answer.read(Probed).spec.scheduling_group), ""


def probe_pod() -> dict[str, Any]:
    """A pod that any admission policy lets through; it is never stored."""
    container = {
        "name": "probe",
        "image": "probe",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"cpu": "1m", "memory": "1Mi"}},
    }
    spec = {
        "schedulerName": "muster-check",
        "schedulingGroup": {"podGroupName": "muster-check"},
        "containers": [container],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "automountServiceAccountToken": False,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "muster-check-"}, "spec": spec}


# ── rights ───────────────────────────────────────────────────────────────────────────────────────


async def _look_at_rights(
    client: ApiClient, lease_namespace: str, scheduler_names: tuple[str, ...]
) -> list[Finding]:
    lacking = []
    for group, resource, verbs, purpose in RIGHTS:
        attributes = {"group": group, "resource": resource}
        if resource == "leases":
            attributes |= {"namespace": lease_namespace, "name": scheduler_names[0]}
        try:
            refused = [verb for verb in verbs if not await _may(client, {**attributes, "verb": verb})]
        except ApiError as error:
            because = "this server has no access reviews" if error.code == 404 else str(error)
            return [Finding("rights", Level.UNKNOWN, f"what this user may do cannot be asked: {because}")]
        if refused:
            where = f" in namespace {lease_namespace}" if resource == "leases" else ""
            what = f"{_listed(refused)} {_full_name(group, resource)}{where}"
            text = f"this user may not {what}, so Muster could not {purpose}"
            lacking.append(Finding("rights", Level.MISSING, text, f"grant it to {what}"))
    return lacking or [Finding("rights", Level.OK, "this user may do all that Muster does")]


def _full_name(group: str, resource: str) -> str:
    """`podgroups.scheduling.k8s.io/status`, as kubectl takes it."""
    name, slash, subresource = resource.partition("/")
    return (f"{name}.{group}" if group else name) + slash + subresource


def _listed(words: list[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


async def _may(client: ApiClient, attributes: dict[str, str]) -> bool:
    resource, _, subresource = attributes["resource"].partition("/")
    asked = {**attributes, "resource": resource}
    if subresource:
        asked["subresource"] = subresource
    if attributes["verb"] == "create":
        asked.pop("name", None)  # no name is known to the authorizer when an object is created
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = await client.call("POST", path_of(_REVIEWS, ""), body)
    return answer.read(Review).status.allowed


# ── another scheduler of the same name ───────────────────────────────────────────────────────────


class LeaseHolder(Struct, frozen=True):
    """Who holds a lease and whether that still counts; `since_s` is when it was taken or given back."""

    identity: str
    is_fresh: bool
    since_s: float = 0.0


class Binder(Struct, frozen=True):
    """Who wrote Scheduled events under a scheduler's name, and from when to when."""

    instance: str
    first_s: float
    last_s: float


async def _look_for_rivals(client: ApiClient, name: str, lease_namespace: str, now_s: float) -> list[Finding]:
    try:
        holder = await _holder_of(client, lease_namespace, name, now_s)
        stock = None
        if name == STOCK_NAME:
            stock = await _holder_of(client, lease_namespace, STOCK_LEASE, now_s)
        binders = await _binders_of(client, name)
    except ApiError as error:
        doubt = f"whether another scheduler serves {name!r} cannot be seen: {error}"
        return [Finding("rival", Level.UNKNOWN, doubt)]
    return [judge_rivals(name, holder=holder, stock=stock, binders=binders, now_s=now_s)]


def judge_rivals(
    name: str, *, holder: LeaseHolder | None, stock: LeaseHolder | None, binders: list[Binder], now_s: float
) -> Finding:
    """Say whether somebody else takes pods of this name; two Musters with one lease are no rivals."""
    cure = "stop one of the two, or let Muster serve a name of its own and give its pods that schedulerName"
    if stock is not None and stock.is_fresh:
        text = f"kube-scheduler is running ({stock.identity}) and takes the pods of {name!r}"
        return Finding("rival", Level.MISSING, text, cure)
    for one, other in itertools.combinations(binders, 2):
        if one.first_s < other.last_s and other.first_s < one.last_s:
            both = f"{one.instance} and {other.instance}"
            text = f"two schedulers bind pods of {name!r} at the same time: {both}"
            return Finding("rival", Level.MISSING, text, cure)
    leader = holder.identity if holder is not None and holder.is_fresh else ""
    for binder in binders:
        is_recent = now_s - binder.last_s < RECENT_S
        is_past = holder is not None and binder.last_s <= holder.since_s  # it led before this leader
        if is_recent and not is_past and binder.instance != leader:
            lease = f"{leader} holds the lease" if leader else "nobody holds a lease of that name"
            text = f"pods of {name!r} are being bound by {binder.instance} while {lease}"
            return Finding("rival", Level.MISSING, text, cure)
    if leader:
        return Finding("rival", Level.OK, f"{leader} leads for {name!r}; another `muster run` would stand by")
    return Finding("rival", Level.OK, f"nobody else schedules pods of {name!r}")


async def _holder_of(client: ApiClient, namespace: str, name: str, now_s: float) -> LeaseHolder | None:
    try:
        answer = await client.call("GET", path_of(LEASES, namespace, name))
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    spec = answer.read(Lease).spec
    identity = spec.holder_identity or ""
    renewed_s = parse_seconds(spec.renew_time)
    is_fresh = bool(identity) and renewed_s + (spec.lease_duration_seconds or 0) > now_s
    since_s = parse_seconds(spec.acquire_time) if identity else renewed_s
    return LeaseHolder(identity, is_fresh, since_s)


async def _binders_of(client: ApiClient, name: str) -> list[Binder]:
    query = {"fieldSelector": "reason=Scheduled", "limit": "500"}
    answer = await client.call("GET", path_of(_EVENTS, ""), query=query)
    times: dict[str, list[float]] = {}
    for event in answer.read(EventList).items or ():
        if event.reporting_controller == name and event.event_time:
            instance = event.reporting_instance or name
            times.setdefault(instance, []).append(parse_seconds(event.event_time))
    return [Binder(instance, min(when), max(when)) for instance, when in sorted(times.items())]
