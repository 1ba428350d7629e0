"""What has been said on objects, so that only news is written.

Conditions are compared with those last seen on the object, overlaid with what was written and has not been
seen there yet: a watch may be slower than a decision, and stock's faults of writing False over True come
from forgetting that.  In come conditions that ought to hold; out go `PatchPodStatus` and
`PatchGroupStatus`, or nothing.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import Condition
from muster.api.times import format_seconds
from muster.base.heap import KeyedHeap
from muster.framework.groups import Group, GroupKey, ObjectKey
from muster.framework.ports import PatchGroupStatus, PatchPodStatus

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
WAITING = "muster.dev/Waiting"
WHOLE = "muster.dev/Whole"
POD_SCHEDULED = "PodScheduled"
SAID = (INITIALLY_SCHEDULED, WAITING, WHOLE)  # what is said on groups

UNSEEN_S_MAX = 60.0  # a write that the object has not shown for so long is not believed any more
MESSAGE_BYTES_MAX = 1024


class Words(NamedTuple):
    """What a condition says, its times aside."""

    status: str
    reason: str
    message: str


class _Written:
    """A condition written (None: removed) and not seen on the object yet."""

    __slots__ = ("at_s", "condition")

    def __init__(self, condition: Condition | None, at_s: float) -> None:
        self.condition = condition
        self.at_s = at_s


class Conditions:
    """Conditions of groups and pods as far as this scheduler writes them."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, tuple[str, dict[str, _Written]]] = {}  # uid and conditions by type
        self._pods: dict[str, _Written] = {}  # by uid
        self._hidden: KeyedHeap[GroupKey] = KeyedHeap()  # seen without what was written: believed until then

    # ── groups ───────────────────────────────────────────────────────────────────────────────────

    def of_group(self, group: Group, type_: str) -> Condition | None:
        """The condition as it is on the object, or will be when what was written arrives there."""
        uid, written = self._groups.get(group.key, ("", {}))
        if uid == group.uid and type_ in written:
            return written[type_].condition
        return group.find_condition(type_)

    def words_on(self, group: Group) -> tuple[Words | None, ...]:
        """What is said on the group, or will be, in the order of `SAID`."""
        return tuple([words_of(self.of_group(group, type_)) for type_ in SAID])

    def says_nothing_of(self, group: Group) -> bool:
        """Whether no condition is on the object, nor was one written."""
        return not group.conditions and group.key not in self._groups

    def has_been_scheduled(self, group: Group) -> bool:
        """Whether the group's minimum has been placed once: this never goes back."""
        condition = self.of_group(group, INITIALLY_SCHEDULED)
        return condition is not None and condition.status == "True"

    def patch_group(
        self, group: Group, wanted: Iterable[Condition], *, remove: Iterable[str] = (), now_s: float
    ) -> PatchGroupStatus | None:
        """The one write that makes these conditions so; None when they are so already."""
        news = []
        for condition in wanted:
            known = self.of_group(group, condition.type)
            if not _says_the_same(known, condition):
                news.append(_with_time(condition, known, now_s))
        removed = tuple(type_ for type_ in remove if self.of_group(group, type_) is not None)
        if not news and not removed:
            return None
        uid, written = self._groups.get(group.key, ("", {}))
        if uid != group.uid:
            written = {}
            self._groups[group.key] = (group.uid, written)
        for condition in news:
            written[condition.type] = _Written(condition, now_s)
        for type_ in removed:
            written[type_] = _Written(None, now_s)
        order = self._order(group, written)
        news.sort(key=lambda condition: order.index(condition.type))
        return PatchGroupStatus(
            key=group.key,
            uid=group.uid,
            set_conditions=tuple(news),
            remove_conditions=removed,
            order=order,
        )

    @staticmethod
    def _order(group: Group, written: dict[str, _Written]) -> tuple[str, ...]:
        """Condition types as they will stand on the object: those seen, then those written."""
        gone = {type_ for type_, write in written.items() if write.condition is None}
        types = dict.fromkeys((*(condition.type for condition in group.conditions), *written))
        return tuple(type_ for type_ in types if type_ not in gone)

    def see_group(self, group: Group, now_s: float) -> bool:
        """The object has been seen: what it shows is no news any more.  Gives whether a write has arrived."""
        uid, written = self._groups.get(group.key, ("", {}))
        if uid != group.uid:
            self.lose_group(group.key)
            return False
        has_arrived = False
        for type_, write in list(written.items()):
            shown = group.find_condition(type_)
            arrived = shown is None if write.condition is None else _says_the_same(shown, write.condition)
            has_arrived |= arrived
            if arrived or now_s >= write.at_s + UNSEEN_S_MAX:
                del written[type_]
        if written:
            oldest_s = min(write.at_s for write in written.values())
            self._hidden.put(group.key, (oldest_s + UNSEEN_S_MAX,))
        else:
            self._groups.pop(group.key, None)
            self._hidden.remove(group.key)
        return has_arrived

    def next_due_s(self) -> float | None:
        """When a write that a group does not show is not believed any more."""
        return self._hidden.next_due_s()

    def tick(self, now_s: float) -> Iterator[GroupKey]:
        """Groups to be seen again as they are known: what was written on them may never be shown."""
        return self._hidden.take_due(now_s)

    def lose_group(self, key: GroupKey) -> None:
        """The object is gone, and what was written with it."""
        self._groups.pop(key, None)
        self._hidden.remove(key)

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────

    def of_pod(self, pod: Pod) -> Condition | None:
        """The pod's PodScheduled condition, as it is or will be."""
        written = self._pods.get(pod.metadata.uid)
        return written.condition if written is not None else pod.find_condition(POD_SCHEDULED)

    def patch_pod(self, pod: Pod, *, reason: str, message: str, now_s: float) -> PatchPodStatus | None:
        """Say PodScheduled=False for this reason; None when the pod says so already."""
        wanted = Condition(
            type=POD_SCHEDULED,
            status="False",
            reason=reason,
            message=shorten(message),
            observed_generation=pod.metadata.generation,
        )
        self.see_pod(pod, now_s)
        known = self.of_pod(pod)
        if _says_the_same(known, wanted):
            return None
        condition = _with_time(wanted, known, now_s)
        self._pods[pod.metadata.uid] = _Written(condition, now_s)
        return PatchPodStatus(
            key=ObjectKey(pod.metadata.namespace, pod.metadata.name),
            uid=pod.metadata.uid,
            condition=condition,
        )

    def see_pod(self, pod: Pod, now_s: float) -> None:
        """The pod has been seen: what it shows is no news any more."""
        written = self._pods.get(pod.metadata.uid)
        if written is None or written.condition is None:
            return
        shown = pod.find_condition(POD_SCHEDULED)
        if _says_the_same(shown, written.condition) or now_s >= written.at_s + UNSEEN_S_MAX:
            del self._pods[pod.metadata.uid]

    def lose_pod(self, uid: str) -> None:
        """The pod is bound or gone: nothing will be said on it again."""
        self._pods.pop(uid, None)

    # ── writes that failed ───────────────────────────────────────────────────────────────────────

    def unwrite(self, effect: PatchPodStatus | PatchGroupStatus) -> None:
        """A write was given up: the object still says what it said, and the next attempt may write again."""
        if isinstance(effect, PatchPodStatus):
            self._pods.pop(effect.uid, None)
            return
        uid, written = self._groups.get(effect.key, ("", {}))
        if uid != effect.uid:
            return
        for condition in effect.set_conditions:
            write = written.get(condition.type)
            if write is not None and write.condition == condition:
                del written[condition.type]
        for type_ in effect.remove_conditions:
            write = written.get(type_)
            if write is not None and write.condition is None:
                del written[type_]
        if not written:
            del self._groups[effect.key]


def shorten(text: str) -> str:
    """Cut a text to what an Event takes: the API server counts bytes, and "×" has two."""
    whole, mark = text.encode(), "…"
    if len(whole) <= MESSAGE_BYTES_MAX:
        return text
    return whole[: MESSAGE_BYTES_MAX - len(mark.encode())].decode(errors="ignore") + mark


def words_of(condition: Condition | None) -> Words | None:
    """What a condition says; None where there is none."""
    if condition is None:
        return None
    return Words(condition.status, condition.reason or "", condition.message or "")


def _says_the_same(known: Condition | None, wanted: Condition) -> bool:
    return known is not None and words_of(known) == words_of(wanted)


def _with_time(condition: Condition, known: Condition | None, now_s: float) -> Condition:
    """Keep the time of the last transition while the status stays what it was."""
    kept = known.last_transition_time if known is not None and known.status == condition.status else None
    return replace(condition, last_transition_time=kept or format_seconds(now_s))
