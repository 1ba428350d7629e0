"""Perform `Search` effects in a thread of its own, one after the other; answers go back as `SearchDone`.

The solver lets go of Python while it computes, so the scheduler's loop runs on.  In come searches from
`runtime/process.py`; the search itself is `placement/exact.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from muster.framework.groups import GroupKey
from muster.framework.ports import Event, Search, SearchDone
from muster.placement.exact import Limits, solve
from muster.placement.packing import Answer, Problem, Verdict

log = logging.getLogger("muster.searcher")

Solve = Callable[[Problem, Limits], Answer]


class Searcher:
    """Answers searches.  `perform` is called from tasks of one asyncio loop and never blocks."""

    def __init__(self, *, post: Callable[[Event], None], solve: Solve = solve) -> None:
        self.done = 0
        self._post = post
        self._solve = solve
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="muster-search")
        self._waiting: dict[GroupKey, Search] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Searches that have not begun."""
        return len(self._waiting)

    def perform(self, effect: Search) -> None:
        """Queue a search; one for the same group that has not begun is dropped."""
        self._waiting.pop(effect.group, None)
        self._waiting[effect.group] = effect
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    def stop(self) -> None:
        """Drop everything: nobody waits for answers any more."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            effect = self._waiting.pop(next(iter(self._waiting)))
            limits = Limits(time_ms=effect.time_ms)
            try:
                answer = await loop.run_in_executor(self._thread, self._solve, effect.problem, limits)
            except Exception:
                log.exception("the search of a placement for %s failed", effect.group)
                answer = Answer(Verdict.GAVE_UP, effort="an error of the solver")
            self.done += 1
            self._post(SearchDone(effect.ticket, answer))
        self._task = None
