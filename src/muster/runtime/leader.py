"""Leader election by a coordination.k8s.io/v1 Lease, in the manner and with the times of client-go.

In comes an `ApiClient`; `acquire` returns when this process leads, `hold` returns when it no longer does.
Whoever stops in good order gives the lease back (`release`), so that the next one need not wait it out.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from muster.assembly.requests import micro_time, path_of
from muster.base.errors import ApiError, Conflict
from muster.controllers.ports import Kind
from muster.runtime.client import ApiClient

LEASE_S = 15.0
RENEW_DEADLINE_S = 10.0
RETRY_S = 2.0
JITTER = 1.2
MIN_TIMEOUT_S = 0.5
NAMESPACE = "kube-system"

_LEASES = Kind("coordination.k8s.io", "v1", "leases")

log = logging.getLogger("muster.leader")


class LeaseSpec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct):
    """A lease as read; metadata is kept whole, for an update must bring it back."""

    metadata: dict[str, Any]
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class LeaderElector:
    """One candidate for one lease.

    Whether another's lease has run out is judged by our own clock, from when we saw it change: clocks of two
    machines need not agree.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        name: str,
        identity: str,
        now_s: Callable[[], float],
        rng: np.random.Generator,
        pause: Callable[[float], Awaitable[None]],
        namespace: str = NAMESPACE,
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.identity = identity
        self.renewed_s = -math.inf
        self._client = client
        self._now_s = now_s
        self._rng = rng
        self._pause = pause
        self._seen: Lease | None = None
        self._seen_s = -math.inf

    @property
    def leads(self) -> bool:
        """Whether the lease, as last seen, is ours."""
        return self._seen is not None and self._seen.spec.holder_identity == self.identity

    @property
    def holder(self) -> str:
        """Who holds the lease, as last seen."""
        return (self._seen.spec.holder_identity if self._seen else None) or ""

    async def acquire(self) -> None:
        """Try until this process leads."""
        told = ""
        while not await self._try():
            if self.holder != told:
                told = self.holder
                log.info("lease %s/%s is held by %s; standing by", self.namespace, self.name, told)
            await self._pause(RETRY_S * (1.0 + JITTER * float(self._rng.random())))
        log.info("lease %s/%s acquired", self.namespace, self.name)

    async def hold(self) -> None:
        """Renew until that fails for too long, or another took over; then return."""
        while True:
            await self._pause(RETRY_S)
            # Others may take the lease LEASE_S after the last renewal: by then nothing of ours may go out.
            if await self._try() or (self.leads and self._left_s() > 0.0):
                continue
            taken = f"{self.holder} took it" if not self.leads else "it could not be renewed in time"
            log.error("lease %s/%s is lost: %s", self.namespace, self.name, taken)
            return

    async def release(self) -> None:
        """Give the lease back if it is ours."""
        if not self.leads or self._seen is None:
            return
        now = micro_time(self._now_s())
        released = LeaseSpec("", 1, now, now, self._seen.spec.lease_transitions)
        try:
            await self._update(released)
        except ApiError as error:
            log.warning("lease %s/%s could not be given back: %s", self.namespace, self.name, error)

    def _left_s(self) -> float:
        """How long the lease may still go without a renewal."""
        return self.renewed_s + RENEW_DEADLINE_S - self._now_s()

    def _timeout_s(self) -> float:
        """How long one of the two requests of a renewal may take so that both end before the deadline."""
        return max(MIN_TIMEOUT_S, self._left_s() / 2) if self.leads else RENEW_DEADLINE_S / 2

    async def _try(self) -> bool:
        """Acquire or renew once."""
        try:
            return await self._try_once()
        except ApiError as error:
            log.log(
                logging.INFO if isinstance(error, Conflict) else logging.WARNING,
                "lease %s/%s: %s",
                self.namespace,
                self.name,
                error,
            )
            return False

    async def _try_once(self) -> bool:
        now_s = self._now_s()
        lease = await self._read()
        if lease is None:
            return await self._create(now_s)
        if self._seen is None or lease.spec != self._seen.spec:
            self._seen_s = now_s
        self._seen = lease
        holder = lease.spec.holder_identity
        duration_s = float(lease.spec.lease_duration_seconds or LEASE_S)
        if holder and holder != self.identity and self._seen_s + duration_s > now_s:
            return False
        now = micro_time(now_s)
        transitions = lease.spec.lease_transitions or 0
        is_renewal = holder == self.identity
        await self._update(
            LeaseSpec(
                holder_identity=self.identity,
                lease_duration_seconds=int(LEASE_S),
                acquire_time=lease.spec.acquire_time if is_renewal else now,
                renew_time=now,
                lease_transitions=transitions if is_renewal else transitions + 1,
            )
        )
        self.renewed_s = now_s
        return True

    async def _read(self) -> Lease | None:
        try:
            answer = await self._client.call(
                "GET", path_of(_LEASES, self.namespace, self.name), timeout_s=self._timeout_s()
            )
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return msgspec.json.decode(answer.body, type=Lease)

    async def _create(self, now_s: float) -> bool:
        now = micro_time(now_s)
        spec = LeaseSpec(self.identity, int(LEASE_S), now, now, 0)
        body = _body({"name": self.name, "namespace": self.namespace}, spec)
        answer = await self._client.call("POST", path_of(_LEASES, self.namespace), body)
        self._keep(answer.body, now_s)
        return True

    async def _update(self, spec: LeaseSpec) -> None:
        assert self._seen is not None
        path = path_of(_LEASES, self.namespace, self.name)
        answer = await self._client.call(
            "PUT", path, _body(self._seen.metadata, spec), timeout_s=self._timeout_s()
        )
        self._keep(answer.body, self._now_s())

    def _keep(self, body: bytes, now_s: float) -> None:
        self._seen = msgspec.json.decode(body, type=Lease)
        self._seen_s = self.renewed_s = now_s


def _body(metadata: dict[str, Any], spec: LeaseSpec) -> dict[str, Any]:
    plain = {name: value for name, value in msgspec.to_builtins(spec).items() if value is not None}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": plain}
