"""An embedded cluster without sockets, for a program that plays a story on it step by step.

`Stage` drives the cluster in the caller's own thread: requests are answered at once, time passes when the
caller lets it.  `muster demo` plays on the real clock, its tests on one that jumps.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from muster.apiserver.exchange import Request
from muster.assembly.cluster_plan import ClusterPlan, build_cluster
from muster.base.errors import ApiError
from muster.runtime.clock import Clock

LOOK_EVERY_S = 0.02
_CONTENT = {"PATCH": "application/merge-patch+json"}


class Stage:
    """A cluster to play on; `now_s` and `pause` are its time."""

    def __init__(
        self,
        plan: ClusterPlan,
        *,
        rng: np.random.Generator,
        now_s: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._now_s = now_s
        self._pause = pause
        self._started_s = now_s()
        self._cluster = build_cluster(plan, rng, self._started_s)

    @property
    def elapsed_s(self) -> float:
        """How long the play has lasted."""
        return self._now_s() - self._started_s

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one request (a PATCH is a merge patch) and give the object of the answer.

        Raises   ApiError with the server's words.
        """
        headers = {"content-type": _CONTENT.get(method, "application/json")}
        request = Request(method, path, headers=headers, body=b"" if body is None else body)
        answer = self._cluster.request(request, self._now_s())
        found: dict[str, Any] = answer.object or {}
        if answer.status >= 300:
            raise ApiError(str(found.get("message")), code=answer.status, reason=str(found.get("reason")))
        return found

    def pass_time(self, until: Callable[[], bool], patience_s: float) -> bool:
        """Let the cluster work until `until` is true; False if it is not within `patience_s`."""
        deadline_s = self._now_s() + patience_s
        while True:
            now_s = self._now_s()
            due_s = self._cluster.advance(now_s)
            if due_s is not None and due_s <= now_s:
                continue
            if until():
                return True
            if now_s >= deadline_s:
                return False
            next_s = deadline_s if due_s is None else min(due_s, deadline_s)
            self._pause(min(next_s - now_s, LOOK_EVERY_S))


def real_time_stage(plan: ClusterPlan) -> Stage:
    """A stage on the real clock, with chance of its own."""
    rng = np.random.default_rng()  # noqa: TID251  here chance comes in
    return Stage(plan, rng=rng, now_s=Clock().now_s, pause=time.sleep)
