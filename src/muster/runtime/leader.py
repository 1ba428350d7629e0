"""Leader election over HTTP: `assembly/leadership.py` says what to ask for, here it is asked.

In comes an `ApiClient`; `acquire` returns when this process leads, `hold` returns when it no longer does.
Whoever stops in good order gives the lease back (`release`), so that the next one need not wait it out.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import numpy as np

from muster.assembly.leadership import JITTER, NAMESPACE, RETRY_S, Candidacy, Lease
from muster.assembly.requests import Call
from muster.base.errors import ApiError, Conflict, Unavailable
from muster.runtime.client import ApiClient

ACQUIRE_RETRY_S = 0.5  # who stands by must notice within two seconds that the lease was given back

log = logging.getLogger("muster.leader")


class LeaderElector:
    """One candidate for one lease."""

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
        boot_s: Callable[[], float] | None = None,
        led_under: str = "",
        on_went_back: Callable[[str], None],
    ) -> None:
        self.candidacy = Candidacy(name=name, identity=identity, namespace=namespace, led_under=led_under)
        self._boot_s = boot_s or now_s
        self.name = name
        self.namespace = namespace
        self.refusal = ""  # what the API says if it does not let us read or write the lease
        self._client = client
        self._now_s = now_s
        self._rng = rng
        self._pause = pause
        self._on_went_back = on_went_back
        self._asked_to_wait_s = 0.0  # by the last answer; a renewal cannot
        self._bid: asyncio.Task[bool] | None = None  # the last one; it may still be on the wire

    @property
    def leads(self) -> bool:
        """Whether the lease, as last seen, is ours."""
        return self.candidacy.leads

    @property
    def may_write(self) -> bool:
        """Whether we renewed within the deadline: asked before each write."""
        return self.candidacy.may_write(self._boot_s())

    @property
    def holder(self) -> str:
        """Who holds the lease, as last seen."""
        return self.candidacy.holder

    @property
    def renewed_s(self) -> float:
        """When the lease was last renewed."""
        return self.candidacy.renewed_s

    async def acquire(self) -> None:
        """Try until this process leads.  Raises ConfigError if the name is led under another lease."""
        told = ""
        while not await self._try():
            if self.holder != told:
                told = self.holder
                log.info("lease %s/%s is held by %s; standing by", self.namespace, self.name, told)
            await self._pause(self._retry_s())
        log.info("lease %s/%s acquired", self.namespace, self.name)

    async def stand_by(self) -> None:
        """Look at the lease until cancelled, so that one that has run out by then is not waited for again."""
        while True:
            try:
                lease = await self._read()
            except ApiError as error:
                log.info("lease %s/%s: %s", self.namespace, self.name, error)
            else:
                if lease is not None:
                    self.candidacy.look(lease, self._now_s())
                    self._has_gone_back()
            await self._pause(self._retry_s())

    def _retry_s(self) -> float:
        """Before the next look: no longer than until the lease runs out, unless the server asks for more."""
        retry_s = ACQUIRE_RETRY_S * (1.0 + JITTER * float(self._rng.random()))
        left_s = self.candidacy.free_s - self._now_s()
        return max(min(retry_s, left_s) if left_s > 0.0 else retry_s, self._asked_to_wait_s)

    async def hold(self) -> None:
        """Renew until that fails for too long, or another took over; then return."""
        while True:
            await self._pause(RETRY_S)
            # Others may take the lease LEASE_S after the last renewal: by then nothing of ours may go out.
            if await self._try() or (self.leads and self.candidacy.left_s(self._now_s()) > 0.0):
                continue
            taken = f"{self.holder} took it" if not self.leads else "it could not be renewed in time"
            log.error("lease %s/%s is lost: %s", self.namespace, self.name, taken)
            return

    async def release(self) -> None:
        """Give the lease back if it is ours, in the version that our last renewal left it in."""
        if self._bid is not None:
            await asyncio.wait([self._bid])
            if self.leads and not self._bid.result():  # its answer was lost: what is there has to be read
                await self._try()
        call = self.candidacy.resignation(self._now_s())
        if call is None:
            return
        try:
            lease = await self._send(call)
        except ApiError as error:
            log.warning("lease %s/%s could not be given back: %s", self.namespace, self.name, error)
        else:
            self.candidacy.resigned(lease, self._now_s())

    async def _try(self) -> bool:
        """Acquire or renew once.

        Goes on to its end where the caller is cancelled: what is on the wire may land, and whoever then gives
        the lease back must know its version.
        """
        self._bid = asyncio.create_task(self._try_and_tell())
        return await asyncio.shield(self._bid)

    async def _try_and_tell(self) -> bool:
        try:
            has_won = await self._try_once()
        except ApiError as error:
            self.refusal = str(error) if error.code in (401, 403) else ""
            log.log(
                logging.INFO if isinstance(error, Conflict) else logging.WARNING,
                "lease %s/%s: %s",
                self.namespace,
                self.name,
                error,
            )
            return False
        self.refusal = ""
        return has_won

    async def _try_once(self) -> bool:
        now_s, boot_s = self._now_s(), self._boot_s()
        call = self.candidacy.bid(await self._read(), now_s)
        if call is None or self._has_gone_back():
            return False
        lease = await self._send(call)
        if lease.spec.holder_identity != self.candidacy.identity:
            raise Unavailable("the server answered the bid with a lease of somebody else", code=0)
        self.candidacy.won(lease, now_s, boot_s)
        return not self._has_gone_back()

    def _has_gone_back(self) -> bool:
        """Whether the store was restored from a backup; whoever owns this process has to end it then."""
        if self.candidacy.went_back:
            self._on_went_back(self.candidacy.went_back)
        return bool(self.candidacy.went_back)

    async def _read(self) -> Lease | None:
        try:
            return await self._send(self.candidacy.reading())
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    async def _send(self, call: Call) -> Lease:
        body = call.body or None
        timeout_s = self.candidacy.timeout_s(self._now_s())
        self._asked_to_wait_s = 0.0
        try:
            answer = await self._client.call(call.method, call.path, body, timeout_s=timeout_s)
        except ApiError as error:
            self._asked_to_wait_s = error.retry_after_s or 0.0
            raise
        return answer.read(Lease)
