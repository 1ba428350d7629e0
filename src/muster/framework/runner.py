"""Runs the plugins of a profile at each extension point, and names the one that said no.

A plugin that raises becomes a `PluginError` that names plugin, point and entity.  The stopwatch is given
from outside: the real one in the runtime, one that always says zero in the simulator.  Next:
`scheduling/cycle.py`, which asks.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from muster.api.core import Node, Pod
from muster.base.arrays import Bool, Float64, Int32, Int64
from muster.base.errors import ConfigError, PluginError
from muster.cluster.devices import Devices
from muster.cluster.snapshot import Snapshot
from muster.framework.blame import blamed
from muster.framework.events import ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import Group, PodKey, Subgroup, UnsupportedField
from muster.framework.judge import NodeJudge
from muster.framework.points import (
    ANY_ROW,
    Capacity,
    ClaimGate,
    Entity,
    Example,
    Filter,
    Hints,
    MemberCheck,
    NodeReason,
    PackingRule,
    PlacementFeasible,
    PlacementGenerator,
    PlacementScore,
    PlacementTotals,
    PostFilter,
    PreBind,
    Preemptor,
    PreEnqueue,
    QueueSort,
    Rescue,
    Score,
)
from muster.framework.ports import Prepare
from muster.framework.status import Status, Verdict
from muster.placement.assignment import fill
from muster.placement.domain_totals import DomainTotals
from muster.placement.domains import Placements, intersect, one_placement
from muster.placement.memory import Judgment
from muster.placement.neighbours import minds_order
from muster.placement.packing import Packing, combine, no_rule
from muster.placement.shapes import ShapeKey
from muster.placement.steering import Steer

Stopwatch = Callable[[], float]
Point = TypeVar("Point")

_SEVERITY = {
    Verdict.SUCCESS: 0,
    Verdict.WAIT: 1,
    Verdict.UNSCHEDULABLE: 2,
    Verdict.UNRESOLVABLE: 3,
    Verdict.ERROR: 4,
}


class NamedReason(Struct, frozen=True):
    """A filter's reason and the plugin that gave it."""

    plugin: str
    reason: NodeReason


class Stated(NamedTuple):
    """The rules of all filters as far as they can be stated in integers.

    `is_exact`: that is all they say.  `narrows`: whoever they refuse stays refused when others are placed.
    """

    packing: Packing
    is_exact: bool
    narrows: bool


class Filtered(Struct, frozen=True):
    """What all filters together say of some rows.  Shapes: feasible [K], each reason's mask [K]."""

    feasible: Bool
    reasons: tuple[NamedReason, ...]


class Heed(NamedTuple):
    """How rules about other pods bear on a pod.

    `is_apart`: its copies exclude each other on a node.  `is_all`: nothing else is to be heeded; else other
    pods keep it off some node, or its rule looks beyond single nodes.
    """

    is_apart: bool
    is_all: bool


class Weighted(Struct, frozen=True):
    """A plugin of a profile with the weight of its score."""

    plugin: Any
    weight: float = 1.0


def zero_stopwatch() -> float:
    """A stopwatch that stands still, for simulations."""
    return 0.0


class Runner:
    """The plugins of one profile, sorted by the points they serve, in the order of the profile."""

    def __init__(self, plugins: Sequence[Weighted], *, stopwatch: Stopwatch = zero_stopwatch) -> None:
        self.stopwatch = stopwatch
        self.names = tuple(weighted.plugin.name for weighted in plugins)
        for name in self.names:
            if self.names.count(name) > 1:
                raise ConfigError(f"plugin {name!r} is given twice", path="plugins")
        everything = [weighted.plugin for weighted in plugins]
        sorts = _serving(QueueSort, everything)  # type: ignore[type-abstract]
        if len(sorts) != 1:
            found = ", ".join(plugin.name for plugin in sorts) or "none"
            raise ConfigError(
                f"a profile needs exactly one plugin that sorts the queue, got {found}", path="plugins"
            )
        self._queue_sort = sorts[0]
        self._pre_enqueue = _serving(PreEnqueue, everything)  # type: ignore[type-abstract]
        self._member_checks = _serving(MemberCheck, everything)  # type: ignore[type-abstract]
        self.filters = tuple(_serving(Filter, everything))  # type: ignore[type-abstract]
        self._judge = NodeJudge(
            self.filters,
            _serving(Capacity, everything),  # type: ignore[type-abstract]
            [
                (weighted.plugin, weighted.weight)
                for weighted in plugins
                if isinstance(weighted.plugin, Score)
            ],
        )
        # Names of the plugins that refuse for want of room: those that count copies.
        self.counting = frozenset(plugin.name for plugin in self._judge.capacities)
        self._readers = tuple(  # filters that do not count and may mind what is placed
            plugin
            for plugin in self.filters
            if plugin.name not in self.counting and getattr(plugin, "reads_pods", True) is not False
        )
        node_wise = (*self.filters, *(plugin for plugin, _ in self._judge.scores))
        self._reads_metadata = any(getattr(plugin, "reads_metadata", True) for plugin in node_wise)
        self._steer: Steer | None = None
        self._heeds_labels = any(getattr(plugin, "reads_selected_labels", False) for plugin in everything)
        self._feasible = _serving(PlacementFeasible, everything)  # type: ignore[type-abstract]
        self._generators = _serving(PlacementGenerator, everything)  # type: ignore[type-abstract]
        self._placement_scores = [
            (weighted.plugin, weighted.weight)
            for weighted in plugins
            if isinstance(weighted.plugin, PlacementScore)
        ]
        self.domain_totals = DomainTotals()
        self._post_filters = _serving(PostFilter, everything)  # type: ignore[type-abstract]
        self._claim_gates = _serving(ClaimGate, everything)  # type: ignore[type-abstract]
        self._pre_binds = _serving(PreBind, everything)  # type: ignore[type-abstract]
        self._rules: dict[str, tuple[HintRule, ...]] = {
            plugin.name: tuple(_guarded(plugin.name, rule) for rule in plugin.hint_rules())
            for plugin in _serving(Hints, everything)  # type: ignore[type-abstract]
        }

    def sort_key(self, entity: Entity) -> tuple[float, ...]:
        """Where in the active queue the entity stands; by priority and turn should the plugin raise."""
        try:
            with blamed(self._queue_sort.name, "sort_key", entity.name):
                return self._queue_sort.sort_key(entity)
        except PluginError:
            return (-entity.priority, entity.queued_s, entity.sequence)

    def rules_of(self, plugin: str) -> tuple[HintRule, ...]:
        """The hint rules of a plugin; none for a name that is no plugin of this profile."""
        return self._rules.get(plugin, ())

    def pre_enqueue(
        self,
        entity: str,
        group: Group | None,
        *,
        waiting: tuple[Pod, ...],
        placed: int,
        children: tuple[Subgroup, ...] = (),
    ) -> Status:
        """The first verdict that holds the entity back, else success."""
        for plugin in self._pre_enqueue:
            with blamed(plugin.name, "pre_enqueue", entity):
                status = plugin.pre_enqueue(group, waiting=waiting, placed=placed, children=children)
            if not status.ok:
                return replace(status, plugin=plugin.name)
        return Status.success()

    def unsupported(self, pod: Pod) -> tuple[tuple[str, UnsupportedField], ...]:
        """What the pod asks for that is not built, with the plugin that says so."""
        found = []
        for plugin in self._member_checks:
            with blamed(plugin.name, "unsupported", pod.metadata.name):
                found += [(plugin.name, field) for field in plugin.unsupported(pod)]
        return tuple(found)

    def placement_feasible(self, group: Group, *, assigned: int, remaining: int) -> Status:
        """The most severe verdict of all plugins on a group so far."""
        worst = Status.success()
        for plugin in self._feasible:
            with blamed(plugin.name, "placement_feasible", str(group.key)):
                status = plugin.placement_feasible(group, assigned=assigned, remaining=remaining)
            if _SEVERITY[status.verdict] > _SEVERITY[worst.verdict]:
                worst = replace(status, plugin=plugin.name)
        return worst

    def placements(
        self, group: Group, snapshot: Snapshot, rows: Int32, *, pinned: Sequence[tuple[Pod, int]]
    ) -> Placements | Status:
        """The candidate placements inside these rows, cut together from all generators; none may be left.

        A Status names the plugin that finds the members placed already in contradiction to its rule.
        """
        found = one_placement(rows)
        for plugin in self._generators:
            with blamed(plugin.name, "placements", str(group.key)):
                answer = plugin.placements(group, snapshot, rows, pinned=pinned)
            if isinstance(answer, Status):
                return replace(answer, plugin=plugin.name)
            found = answer if found.count == 1 and found.rows is rows else intersect(found, answer)
        return found

    @property
    def generators(self) -> tuple[str, ...]:
        """Names of the plugins that generate placements."""
        return tuple(plugin.name for plugin in self._generators)

    def score_placements(self, group: Group, totals: PlacementTotals) -> Float64:
        """Weighted sum of all scores of the placements, higher is better.  Shapes: returns [D]."""
        total = np.zeros(totals.member_count.shape, dtype=np.float64)
        for plugin, weight in self._placement_scores:
            with blamed(plugin.name, "score_placements", str(group.key)):
                total += weight * plugin.score_placements(group, totals)
        return total

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Filtered:
        """Ask every filter about these rows; a row is feasible when all say so."""
        feasible = np.ones(rows.shape, dtype=np.bool_)
        reasons: list[NamedReason] = []
        for plugin in self.filters:
            with blamed(plugin.name, "filter", pod.metadata.name):
                verdict = plugin.filter(pod, snapshot, rows)
                feasible &= verdict.feasible
            reasons += [NamedReason(plugin.name, reason) for reason in verdict.reasons]
        return Filtered(feasible, tuple(reasons))

    def rejectors(self, pods: Iterable[Pod], snapshot: Snapshot, rows: Int32) -> set[str]:
        """Every plugin that keeps one of these pods from one of these rows."""
        return {named.plugin for pod in pods for named in self.filter(pod, snapshot, rows).reasons}

    def example(self, plugin: str, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        """What this filter's reason `text` is about on this row; "" if the plugin does not show it."""
        for each in self.filters:
            if each.name == plugin and isinstance(each, Example):
                with blamed(plugin, "example", pod.metadata.name):
                    return each.example(pod, snapshot, row, text)
        return ""

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """Rows to judge again for `pod` after `placed` took `row`, ascending; None: all of them."""
        changed: set[int] = set()
        for plugin in self.filters:
            with blamed(plugin.name, "rows_changed", pod.metadata.name):
                rows = plugin.rows_changed(placed, row, pod, snapshot)
            if rows is None:
                return None
            changed.update(rows.tolist())
        return np.array(sorted(changed), dtype=np.int32)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64 | None:
        """Copies of `pod` per row by every plugin that counts [K]; None when no plugin does."""
        least: Int64 | None = None
        for plugin in self._judge.capacities:
            with blamed(plugin.name, "capacity", pod.metadata.name):
                count = plugin.capacity(pod, snapshot, rows)
                least = count if least is None else np.minimum(least, count)
        return least

    def judge(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Judgment:
        """What filters, capacities and weighted scores say of these rows, asked now.  Shapes: [K]."""
        return self._judge.judge(pod, snapshot, rows)

    def recall(self, pod: Pod, shape: ShapeKey, snapshot: Snapshot, rows: Int32) -> Judgment:
        """The same, by memory where nothing has changed; `shape` is the pod's.  It is not to be written.

        One that is steered lives for one search: it has nothing to remember.
        """
        if self._steer is not None:
            return self._judge.judge(pod, snapshot, rows)
        return self._judge.recall(pod, shape, snapshot, rows)

    def post_filter(self, preemptor: Preemptor) -> Rescue | None:
        """What the first plugin that succeeds (or sees no way) says, else the last; None: no plugin."""
        rescue: Rescue | None = None
        for plugin in self._post_filters:
            with blamed(plugin.name, "post_filter", preemptor.kind):
                answer = plugin.post_filter(preemptor)
            rescue = replace(answer, status=replace(answer.status, plugin=plugin.name))
            if rescue.status.verdict is not Verdict.UNSCHEDULABLE:
                break
        return rescue

    def check_claims(self, entity: str, waiting: Sequence[Pod], devices: Devices) -> Status:
        """The first verdict that holds pods back for claims of theirs, else success."""
        for plugin in self._claim_gates:
            with blamed(plugin.name, "check_claims", entity):
                status = plugin.check_claims(waiting, devices)
            if not status.ok:
                return replace(status, plugin=plugin.name)
        return Status.success()

    def prepare(
        self, placed: Sequence[tuple[Pod, int]], snapshot: Snapshot
    ) -> dict[PodKey, tuple[Prepare, ...]]:
        """What members of one decision need to have written before they are bound, by all plugins."""
        writes: dict[PodKey, tuple[Prepare, ...]] = {}
        for plugin in self._pre_binds:
            with blamed(plugin.name, "prepare", placed[0][0].metadata.name if placed else ""):
                for key, found in plugin.prepare(placed, snapshot).items():
                    writes[key] = writes.get(key, ()) + found
        return writes

    def is_ready(self, pod: Pod, node: Node, snapshot: Snapshot) -> Status:
        """The first plugin's answer that is not success, the most severe first."""
        worst = Status.success()
        for plugin in self._pre_binds:
            with blamed(plugin.name, "is_ready", pod.metadata.name):
                status = plugin.is_ready(pod, node, snapshot)
            if _SEVERITY[status.verdict] > _SEVERITY[worst.verdict]:
                worst = replace(status, plugin=plugin.name)
        return worst

    @property
    def makes_room(self) -> bool:
        """Whether some plugin may make room for what finds none."""
        return bool(self._post_filters)

    def lay(
        self, pod: Pod, snapshot: Snapshot, rows: Int32, fits: Int64, score: Float64, count: int
    ) -> Int64:
        """Spread so many copies over the rows they fit on, the best full before the next is begun.

        Shapes   rows, fits, score [K]; returns [≤ count] an index into them per copy.
        """
        if self._steer is not None:
            return self._steer.lay(pod, snapshot, rows, fits, score, count)
        return fill(fits, score, count)

    def steered(self, steer: Steer) -> "Runner":
        """The same filters, with this way of scoring alone."""
        steered = copy(self)
        steered._judge = NodeJudge(self.filters, self._judge.capacities, [(steer, 1.0)])
        steered._steer = steer
        return steered

    def counts_only(self, others: Sequence[Pod], pod: Pod, snapshot: Snapshot) -> bool:
        """Whether these, placed here or gone on this fork, matter to `pod` by the room of their row alone.

        That is so when no filter but those that count copies changes its mind on their account.
        """
        # One that is silent is not asked about each pod that may go: 9 of 70 ms of a gang's preemption.
        unasked = self.counting | self._judge.silent(pod, snapshot)
        for plugin in self.filters:
            if plugin.name in unasked or getattr(plugin, "reads_pods", True) is False:
                continue
            with blamed(plugin.name, "rows_changed", pod.metadata.name):
                for other in others:
                    changed = plugin.rows_changed(other, ANY_ROW, pod, snapshot)
                    if changed is None or changed.size:
                        return False
        return True

    @property
    def reads_metadata(self) -> bool:
        """Whether some node-wise plugin looks at labels or annotations: then they are part of a shape."""
        return self._reads_metadata

    def packing(self, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Stated:
        """What all filters say of which of these shapes may share a node.

        Shapes   one pod a shape [S]; rows [K], the N of the packing.
        """
        rules = [no_rule(len(pods), len(rows))]
        is_exact = narrows = True
        for plugin in self.filters:
            rule = self._packing_of(plugin, pods, snapshot, rows)
            if rule is not None:
                rules.append(rule)
            else:
                is_exact = False
                narrows = narrows and getattr(plugin, "only_narrows", False)
        packing = combine(rules)
        narrows = narrows and not any(minds_order(rule) for rule in packing.rules)
        return Stated(packing, is_exact, narrows)

    @staticmethod
    def _packing_of(plugin: Filter, pods: Sequence[Pod], snapshot: Snapshot, rows: Int32) -> Packing | None:
        """The rule of one filter; None when it cannot be stated."""
        with blamed(plugin.name, "packing", pods[0].metadata.name):
            if isinstance(plugin, PackingRule):
                return plugin.packing(pods, snapshot, rows)
            changes = (plugin.rows_changed(placed, ANY_ROW, pod, snapshot) for placed in pods for pod in pods)
            if any(changed is None or changed.size for changed in changes):
                return None
            masks = [plugin.filter(pod, snapshot, rows).feasible for pod in pods]
        return replace(no_rule(len(pods), len(rows)), feasible=np.array(masks))

    def labels_read(self, keys: frozenset[str]) -> frozenset[str]:
        """Of label keys that rules in play read, those that are part of a shape: none if no plugin heeds."""
        return keys if self._heeds_labels else frozenset()

    def usable(self, pod: Pod, snapshot: Snapshot) -> Bool:
        """[N] live rows that pass every filter whose answer does not change with what is placed.

        One that says it reads pods (`reads_pods` is True) is left out, whatever copies of this pod do.
        """
        usable = snapshot.live.copy()
        rows = snapshot.live_rows()
        for plugin in self.filters:
            if getattr(plugin, "reads_pods", False) or (
                rows.size and self._changes_with_placing(plugin, pod, snapshot)
            ):
                continue
            with blamed(plugin.name, "filter", pod.metadata.name):
                usable[rows] &= plugin.filter(pod, snapshot, rows).feasible
        return usable

    def heeds_pods(self, pod: Pod, snapshot: Snapshot) -> Heed:
        """What filters that read pods say of this one, beside what it asks of nodes."""
        rows = snapshot.live_rows()
        readers = [plugin for plugin in self.filters if getattr(plugin, "reads_pods", False)]
        is_refused = any(not plugin.filter(pod, snapshot, rows).feasible.all() for plugin in readers)
        if not any(self._changes_with_placing(plugin, pod, snapshot) for plugin in readers):
            return Heed(is_apart=False, is_all=not is_refused)
        packing, is_exact, _ = self.packing([pod], snapshot, rows)
        return Heed(
            is_apart=bool(packing.conflict[0, 0]), is_all=is_exact and not packing.rules and not is_refused
        )

    def usable_when_empty(self, pod: Pod, snapshot: Snapshot) -> Bool:
        """[N] live rows that pass every filter that says it reads no pods (`reads_pods` is False)."""
        usable = snapshot.live.copy()
        rows = snapshot.live_rows()
        for plugin in self.filters:
            if not getattr(plugin, "reads_pods", True):
                with blamed(plugin.name, "filter", pod.metadata.name):
                    usable[rows] &= plugin.filter(pod, snapshot, rows).feasible
        return usable

    def can_count(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> bool:
        """Whether copies of `pod` may be placed by counting.

        True when a plugin counts and no filter that does not count changes its mind after a copy is placed.
        """
        if not self.counting or not rows.size:
            return False
        return not any(self._changes_with_placing(plugin, pod, snapshot) for plugin in self._readers)

    @staticmethod
    def _changes_with_placing(plugin: Filter, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether the filter may answer otherwise for `pod` once a copy of it is on some row."""
        with blamed(plugin.name, "rows_changed", pod.metadata.name):
            changed = plugin.rows_changed(pod, ANY_ROW, pod, snapshot)
        return changed is None or changed.size > 0


def _guarded(plugin: str, rule: HintRule) -> HintRule:
    """A rule that raises counts as one that says QUEUE: a try too many is better than a group that sleeps."""
    if rule.helps is None:
        return rule
    helps = rule.helps

    def ask(rejected: Rejected, event: ClusterEvent) -> Hint:
        try:
            with blamed(plugin, "hint_rules", str(rejected.key or "")):
                return helps(rejected, event)
        except PluginError:
            return Hint.QUEUE

    return HintRule(rule.change, ask)


def _serving(point: type[Point], plugins: Sequence[object]) -> list[Point]:
    return [plugin for plugin in plugins if isinstance(plugin, point)]
