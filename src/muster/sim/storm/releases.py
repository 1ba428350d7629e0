"""A gang that was released is not decided on again at once, else pods made anew would loop.

`ReleasesBackOff` listens to one process behind `Told`: what it decides after it has released a gang.  How
long the next process waits is not judged: it knows the release by its condition only.
"""

from muster.framework.groups import GroupKey
from muster.framework.ports import BindPod, Effect, Event, EvictPod
from muster.sim.loop import Noting
from muster.sim.told import Told

BACKOFF_S = 10.0


class ReleasesBackOff(Noting):
    """Complains of a gang that is bound within ten seconds of its release."""

    name = "releases back off"

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told
        self._released_s: dict[GroupKey, float] = {}
        self._asked: set[str] = set()  # uids of pods whose binding was asked for before

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        """Note releases, and judge bindings."""
        for effect in effects:
            if isinstance(effect, EvictPod) and not effect.preemptor_kind:
                self._release(effect, now_s)
            elif isinstance(effect, BindPod) and effect.group is not None and effect.uid not in self._asked:
                self._asked.add(effect.uid)
                after_s = now_s - self._released_s.get(effect.group, -BACKOFF_S)
                if after_s < BACKOFF_S - 0.001:
                    self._complaints.append(
                        f"gang {effect.group} is bound {after_s:.1f} s after it was released"
                    )

    def _release(self, effect: EvictPod, now_s: float) -> None:
        """A pod is released: its gang waits.

        Unless its owner wants it restarted at once after a loss, or members alone go, for they were not ready
        in time.
        """
        group_key = self._told.group_of.get(effect.key)
        group = self._told.groups.get(group_key) if group_key is not None else None
        if group_key is None or group is None:
            return
        is_unready = "were ready within" in (effect.condition.message or "")
        at_once = "replace" if is_unready else "restart"
        if group.terms.on_member_loss != at_once:
            self._released_s[group_key] = now_s
