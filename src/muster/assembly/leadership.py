"""Leader election without the line: what a candidate for a Lease has seen, and what it should ask for next.

In the manner and with the times of client-go.  In come leases as read and answers as they were given, each
with our own clock; out go the requests to make.  Whether another's lease has run out is judged by our own
clock, from when we saw it change: clocks of two machines need not agree.  `runtime/leader.py` plays it over
HTTP, `sim/replica.py` on virtual time.

A Lease does not fence.  So a leader writes nothing once it has not renewed for `RENEW_DEADLINE_S`
(`may_write`), each of its requests ends within `REQUEST_TIMEOUT_S`, and whoever takes over from one that did
not give the lease back decides nothing before `begins_s`.
"""

import math
from typing import Any

import msgspec
from msgspec import Struct

from muster.api.meta import version_number
from muster.assembly.requests import JSON, Call, micro_time, path_of
from muster.base.errors import ConfigError
from muster.controllers.ports import LEASES

LEASE_S = 15.0
RENEW_DEADLINE_S = 10.0
REQUEST_TIMEOUT_S = 5.0
FINISH_S = 8.0  # for what was decided before the lease is given back; kubelets give 30 s before they kill
RETRY_S = 2.0
JITTER = 1.2
MIN_TIMEOUT_S = 0.5
NAMESPACE = "kube-system"
LED_UNDER = "muster.dev/led-under"


class LeaseSpec(Struct, rename="camel"):
    """spec of a coordination.k8s.io/v1 Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct):
    """A lease as read; metadata is kept whole, for an update must bring it back."""

    metadata: dict[str, Any]
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class Candidacy:
    """One candidate for one lease.

    `renewed_s`: when the last renewal was asked for that succeeded.  `begins_s`: a leader decides nothing
    before.  `had_other`: another was seen to hold the lease.  `led_under` is the lease by which this process
    leads, where that is another than the one of this name ("").  `version` is the newest that the lease was
    seen in; `went_back` says how it was seen in an older one after that ("": never): the store was restored
    from a backup.
    """

    def __init__(self, *, name: str, identity: str, namespace: str = NAMESPACE, led_under: str = "") -> None:
        self.name = name
        self.had_other = False
        self.went_back = ""
        self.version = 0
        self._led_under = led_under
        self.namespace = namespace
        self.identity = identity
        self.renewed_s = -math.inf
        self._renewed_boot_s = -math.inf
        self.begins_s = math.inf
        self._seen: Lease | None = None
        self._seen_s = -math.inf
        self._wait_s: float | None = None  # before a leader that is new begins; None: it is not new

    @property
    def leads(self) -> bool:
        """Whether the lease, as last seen, is ours."""
        return self._seen is not None and self._seen.spec.holder_identity == self.identity

    @property
    def holder(self) -> str:
        """Who holds the lease, as last seen."""
        return (self._seen.spec.holder_identity if self._seen else None) or ""

    @property
    def free_s(self) -> float:
        """When the lease as last seen runs out, unless it is renewed; -inf: it was not seen yet."""
        duration_s = self._seen.spec.lease_duration_seconds if self._seen is not None else None
        return self._seen_s + float(duration_s or LEASE_S)

    def left_s(self, now_s: float) -> float:
        """How long the lease may still go without a renewal."""
        return self.renewed_s + RENEW_DEADLINE_S - now_s

    def may_write(self, boot_s: float) -> bool:
        """Whether a request may leave now: nobody else can lead before it has ended.

        `boot_s`: by a clock that goes on while the machine sleeps.  Asked before each write, so that a
        process that stood still for longer than its lease sends nothing when it goes on.
        """
        return self.leads and boot_s < self._renewed_boot_s + RENEW_DEADLINE_S

    def timeout_s(self, now_s: float) -> float:
        """How long one of the two requests of a renewal may take so that both end before the deadline."""
        return max(MIN_TIMEOUT_S, self.left_s(now_s) / 2) if self.leads else RENEW_DEADLINE_S / 2

    def reading(self) -> Call:
        """The request that reads the lease."""
        return Call("GET", path_of(LEASES, self.namespace, self.name), JSON, {})

    def look(self, lease: Lease, now_s: float) -> None:
        """Note the lease as just read: who does so from the start need not wait it out later."""
        if self._seen is None or lease.spec != self._seen.spec:
            self._seen_s = now_s
        self._note_version(lease)
        self._seen = lease

    def bid(self, lease: Lease | None, now_s: float) -> Call | None:
        """Given the lease as just read (None: there is none), the write that acquires or renews it.

        None while another holds it.  Pass what the server answers to the write to `won`.  Raises ConfigError
        if it is held by a process that leads under another lease than we would.
        """
        led, known = self.leads, self.holder
        if lease is None:
            self._wait_s = LEASE_S if known else 0.0  # a lease that vanished was not given back
            return self._creation(now_s)
        self.look(lease, now_s)
        holder = lease.spec.holder_identity
        if holder and holder != self.identity:
            self.had_other = True
            if self.free_s > now_s:
                self._check_led_under(lease, holder)
                return None
        now = micro_time(now_s)
        transitions = lease.spec.lease_transitions or 0
        is_renewal = holder == self.identity
        if is_renewal:
            self._wait_s = None if led else LEASE_S  # a store restored from a backup names us again
        else:
            self._wait_s = REQUEST_TIMEOUT_S if holder else 0.0
        spec = LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=int(LEASE_S),
            acquire_time=lease.spec.acquire_time if is_renewal else now,
            renew_time=now,
            lease_transitions=transitions if is_renewal else transitions + 1,
        )
        return self._update(lease, spec)

    def won(self, lease: Lease, asked_s: float, asked_boot_s: float) -> None:
        """The server answered the write of `bid`, asked for at that time by each clock, with this lease."""
        self._note_version(lease)
        self._seen = lease
        self._seen_s = self.renewed_s = asked_s
        if not self.went_back:
            self._renewed_boot_s = asked_boot_s
        if self._wait_s is not None:
            self.begins_s = asked_s + self._wait_s

    def resignation(self, now_s: float) -> Call | None:
        """The write that gives the lease back, None if it is not ours."""
        if not self.leads or self._seen is None:
            return None
        now = micro_time(now_s)
        return self._update(self._seen, LeaseSpec("", 1, now, now, self._seen.spec.lease_transitions))

    def resigned(self, lease: Lease, now_s: float) -> None:
        """The server took the resignation."""
        self._seen, self._seen_s = lease, now_s

    def _note_version(self, lease: Lease) -> None:
        version = version_number(str(lease.metadata.get("resourceVersion", ""))) or 0
        if 0 < version < self.version:
            self.went_back = (
                f"lease {self.namespace}/{self.name} is of version {version}, {self.version} was seen before"
            )
        self.version = max(self.version, version)

    def _creation(self, now_s: float) -> Call:
        now = micro_time(now_s)
        spec = LeaseSpec(self.identity, int(LEASE_S), now, now, 0)
        metadata = self._annotated({"name": self.name, "namespace": self.namespace})
        return Call("POST", path_of(LEASES, self.namespace), JSON, _body(metadata, spec))

    def _check_led_under(self, lease: Lease, holder: str) -> None:
        """Two processes with one scheduler name and leases of different names would both decide."""
        theirs = (lease.metadata.get("annotations") or {}).get(LED_UNDER, "")
        if theirs != self._led_under:
            raise ConfigError(
                f"pods of scheduler {self.name} are placed by {holder} under the lease "
                f"{theirs or self.name}, not {self._led_under or self.name}",
                hint="give both the same --leader-elect-resource-name, or other scheduler names",
            )

    def _annotated(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """With the lease that this process leads under, where that is another than the name's own."""
        others = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != LED_UNDER}
        annotations = {**others, LED_UNDER: self._led_under} if self._led_under else others
        kept = {key: value for key, value in metadata.items() if key != "annotations"}
        return {**kept, "annotations": annotations} if annotations else kept

    def _update(self, lease: Lease, spec: LeaseSpec) -> Call:
        path = path_of(LEASES, self.namespace, self.name)
        return Call("PUT", path, JSON, _body(self._annotated(lease.metadata), spec))


def _body(metadata: dict[str, Any], spec: LeaseSpec) -> dict[str, Any]:
    plain = {name: value for name, value in msgspec.to_builtins(spec).items() if value is not None}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": plain}
