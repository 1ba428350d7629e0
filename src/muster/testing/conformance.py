"""check_plugin(p): the contract every plugin must meet, whichever extension points it serves.

    def test_it_keeps_the_contract() -> None:
        check_plugin(MyRule(), pods=[make_pod("p", labels={"my/rule": "yes"})])

It asks the plugin about small clusters and a range of pods, plus those given, and compares the answers with
the promises in `muster/framework/points.py`.  What it finds is an AssertionError with the broken promise.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.pod_rules import label_keys_read, labels_read
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import Group, UnsupportedField
from muster.framework.points import (
    ANY_ROW,
    Capacity,
    Entity,
    Example,
    Filter,
    Hints,
    MemberCheck,
    NodeVerdict,
    PackingRule,
    PlacementFeasible,
    PlacementGenerator,
    PlacementScore,
    PlacementTotals,
    PostFilter,
    PreEnqueue,
    QueueSort,
    Score,
    Silence,
)
from muster.framework.status import Status
from muster.placement.capacity import UNLIMITED
from muster.placement.domains import Placements
from muster.placement.neighbours import at
from muster.placement.packing import Packing, group_problem, is_placement
from muster.placement.shapes import annotations_read, shape_key
from muster.testing.builders import make_cluster, make_gang, make_group, make_node, make_pod
from muster.testing.preemptors import broken_promises

_POINTS = (
    QueueSort,
    PreEnqueue,
    MemberCheck,
    PlacementGenerator,
    PlacementScore,
    Filter,
    Capacity,
    Score,
    PlacementFeasible,
    PostFilter,
)
_REJECTING = (PreEnqueue, MemberCheck, PlacementGenerator, Filter, PlacementFeasible)
_COPIES_MAX = 12


def check_plugin(plugin: Any, *, pods: Sequence[Pod] = (), snapshots: Sequence[Snapshot] = ()) -> None:
    """Check every promise that can be checked from outside.

    `pods` and `snapshots` are asked about beside the built-in ones: give some that your rule cares for.
    Raises   AssertionError naming plugin, extension point and promise.
    """
    name = getattr(type(plugin), "name", None)
    _promise(isinstance(name, str) and name.isidentifier(), plugin, "name", "is a class attribute, one word")
    served = [point for point in _POINTS if isinstance(plugin, point)]
    _promise(bool(served), plugin, "points", "serves at least one extension point")
    everything = (*_sample_pods(), *pods)
    clusters = (*_sample_snapshots(), *snapshots)
    if any(isinstance(plugin, point) for point in _REJECTING):
        _check_hints(plugin, everything)
    if isinstance(plugin, QueueSort):
        _check_queue_sort(plugin)
    if isinstance(plugin, PreEnqueue):
        _check_pre_enqueue(plugin)
    if isinstance(plugin, PlacementFeasible):
        _check_placement_feasible(plugin)
    if isinstance(plugin, PostFilter):
        broken = broken_promises(plugin)
        _promise(not broken, plugin, "post_filter", "; ".join(broken))
    if isinstance(plugin, MemberCheck):
        _check_members(plugin, everything)
    for snapshot in clusters:
        if isinstance(plugin, PlacementGenerator):
            _check_placements(plugin, snapshot)
        if isinstance(plugin, PlacementScore):
            _check_placement_score(plugin, snapshot)
        for pod in everything:
            _check_node_wise(plugin, pod, snapshot)


def _promise(kept: bool, plugin: Any, point: str, text: str) -> None:
    if not kept:
        raise AssertionError(f"plugin {getattr(plugin, 'name', plugin)!r}, {point}: {text}")


# ── samples ──────────────────────────────────────────────────────────────────────────────────────


def _sample_pods() -> tuple[Pod, ...]:
    prefer = [{"weight": 5, "preference": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}}]
    return (
        make_pod("nothing"),
        make_pod("small", cpu="500m", memory="1Gi"),
        make_pod("gpu", cpu=1, gpu=2),
        make_pod("huge", cpu=1000),
        make_pod("unknown", requests={"example.com/none": 1}),
        make_pod("port", host_ports=[80]),
        make_pod("rack", node_selector={"rack": "r1"}),
        make_pod("tolerant", tolerations=[{"operator": "Exists"}]),
        make_pod(
            "prefers", affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefer}}
        ),
    )


def _sample_snapshots() -> tuple[Snapshot, ...]:
    mixed = (
        make_cluster()
        .rack(8, 2)
        .rack(0, 4)
        .node("tainted", taints=[{"key": "dedicated", "value": "infer", "effect": "NoSchedule"}])
        .node("soft", taints=[{"key": "spot", "effect": "PreferNoSchedule"}])
        .node("cordoned", unschedulable=True)
        .node("full", pods=1)
        .node("gone")
        .running("old-0", "n1", cpu=7, gpu=7, host_ports=[80])
        .running("old-1", "full")
        .running("old-2", "n3", cpu=20)
    )
    mixed.state.remove_node("gone")
    return make_cluster().snapshot(), make_cluster().nodes(3, cpu=2).snapshot(), mixed.snapshot()


# ── rejecting ────────────────────────────────────────────────────────────────────────────────────


def _check_hints(plugin: Any, pods: Sequence[Pod]) -> None:
    """A group rejected by a plugin without hints would sleep for ever."""
    _promise(isinstance(plugin, Hints), plugin, "hint_rules", "who rejects says which events can help")
    rules = plugin.hint_rules()
    _promise(bool(rules), plugin, "hint_rules", "names at least one event")
    _promise(all(isinstance(rule, HintRule) for rule in rules), plugin, "hint_rules", "gives HintRules")
    changes = [rule.change for rule in rules]
    _promise(len(changes) == len(set(changes)), plugin, "hint_rules", "has one rule for a change")
    rejected = Rejected(make_group("g", 2).key, make_group("g", 2), tuple(pods))
    for rule in rules:
        for event in _sample_events(rule.change):
            answer = Hint.QUEUE if rule.helps is None else rule.helps(rejected, event)
            _promise(isinstance(answer, Hint), plugin, "hint_rules", "a rule answers with a Hint")


def _sample_events(change: Change) -> Iterator[ClusterEvent]:
    group = make_group("g", 2)
    yield ClusterEvent(change)
    yield ClusterEvent(
        change,
        node=make_node("n1", gpu=8),
        old_node=make_node("n1", gpu=4, unschedulable=True),
        pod=make_pod("p", node="n1", group="g", gpu=4, host_ports=[80]),
        group_key=group.key,
        old_group=replace(group, min_count=3),
        group=group,
    )


def _check_status(plugin: Any, point: str, status: object) -> None:
    _promise(isinstance(status, Status), plugin, point, "answers with a Status")
    assert isinstance(status, Status)
    _promise(status.ok or bool(status.message), plugin, point, "a no has a message for the user")


def _sample_groups() -> tuple[Group, ...]:
    return make_group("g"), make_group("g", 1), make_group("g", 3), make_group("g", 3, priority=5)


def _check_pre_enqueue(plugin: PreEnqueue) -> None:
    for group in (None, *_sample_groups()):
        for count in (0, 1, 3):
            for placed in (0, 2):
                waiting = make_gang("g", count, gates=["a"] if count == 1 else [])
                status = plugin.pre_enqueue(group, waiting=waiting, placed=placed)
                _check_status(plugin, "pre_enqueue", status)


def _check_placement_feasible(plugin: PlacementFeasible) -> None:
    for group in _sample_groups():
        for assigned in range(4):
            for remaining in range(4):
                status = plugin.placement_feasible(group, assigned=assigned, remaining=remaining)
                _check_status(plugin, "placement_feasible", status)


def _check_members(plugin: MemberCheck, pods: Sequence[Pod]) -> None:
    for pod in pods:
        found = plugin.unsupported(pod)
        _promise(
            all(isinstance(field, UnsupportedField) and field.path and field.why for field in found),
            plugin,
            "unsupported",
            "names the field as the user wrote it, and why",
        )


def _check_queue_sort(plugin: QueueSort) -> None:
    entities = [
        Entity(f"default/{priority}-{sequence}", priority, queued_s, sequence)
        for sequence, (priority, queued_s) in enumerate([(0, 1.0), (0, 1.0), (5, 2.0), (5, 1.0), (-1, 0.0)])
    ]
    keys = [plugin.sort_key(entity) for entity in entities]
    _promise(len(set(keys)) == len(keys), plugin, "sort_key", "is total: no two entities are equal")


# ── placements ───────────────────────────────────────────────────────────────────────────────────


def _check_placements(plugin: PlacementGenerator, snapshot: Snapshot) -> None:
    for group in (*_sample_groups(), make_group("g", 2, topology_keys=("rack",))):
        for rows in (snapshot.live_rows(), snapshot.live_rows()[::2]):
            found = plugin.placements(group, snapshot, rows, pinned=())
            if isinstance(found, Status):
                _check_status(plugin, "placements", found)
                continue
            _promise(
                isinstance(found, Placements), plugin, "placements", "answers with Placements or a Status"
            )
            inside = bool(np.isin(found.rows, rows).all())
            _promise(inside, plugin, "placements", "stays inside the rows given")
            parts = [found.rows_of(index) for index in range(found.count)]
            filled = all(part.size and bool((np.diff(part) > 0).all()) for part in parts)
            _promise(filled, plugin, "placements", "gives rows in ascending order, at least one a placement")


def _check_placement_score(plugin: PlacementScore, snapshot: Snapshot) -> None:
    totals = PlacementTotals(
        snapshot=snapshot,
        requested=snapshot.requested.astype(np.float64),
        allocatable=snapshot.allocatable.astype(np.float64),
        member_count=np.arange(len(snapshot.live), dtype=np.int64),
    )
    for group in _sample_groups():
        score = plugin.score_placements(group, totals)
        shape_kept = score.shape == totals.member_count.shape and score.dtype == np.float64
        _promise(shape_kept, plugin, "score_placements", "is [D] of float64")
        in_range = bool(((score >= 0) & (score <= 100)).all())
        _promise(in_range, plugin, "score_placements", "is between 0 and 100")


# ── node-wise points ─────────────────────────────────────────────────────────────────────────────


def _check_node_wise(plugin: Any, pod: Pod, snapshot: Snapshot) -> None:
    rows = snapshot.live_rows()
    before = snapshot.requested.copy()
    if isinstance(plugin, Filter):
        verdict = _check_filter(plugin, pod, snapshot, rows)
        if isinstance(plugin, Example):
            _check_example(plugin, verdict, pod, snapshot, rows)
        _check_rows_changed(plugin, pod, snapshot, rows)
    if isinstance(plugin, Filter) and isinstance(plugin, Capacity):
        _check_capacity(plugin, plugin, pod, snapshot, rows)
    if isinstance(plugin, Filter) and isinstance(plugin, PackingRule) and rows.size:
        _check_packing(plugin, plugin, pod, snapshot, rows)
    if isinstance(plugin, Score):
        _check_score(plugin, pod, snapshot, rows)
    if isinstance(plugin, Silence):
        _check_silence(plugin, pod, snapshot, rows)
    if getattr(plugin, "judges_row_alone", False):
        _check_row_alone(plugin, pod, snapshot, rows)
    _promise(np.array_equal(before, snapshot.requested), plugin, "node-wise", "writes nothing")


def _check_filter(plugin: Filter, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
    verdict = plugin.filter(pod, snapshot, rows)
    _promise(isinstance(verdict, NodeVerdict), plugin, "filter", "answers with a NodeVerdict")
    feasible = verdict.feasible
    shape_kept = feasible.shape == rows.shape and feasible.dtype == np.bool_
    _promise(shape_kept, plugin, "filter", "feasible is [K] of booleans")
    explained = np.zeros(len(rows), dtype=np.bool_)
    for reason in verdict.reasons:
        _promise(bool(reason.text), plugin, "filter", "a reason has a text")
        _promise(reason.rejected.shape == rows.shape, plugin, "filter", "a reason's mask is [K]")
        _promise(not (reason.rejected & feasible).any(), plugin, "filter", "no reason against a feasible row")
        explained |= reason.rejected
    _promise(bool((explained | feasible).all()), plugin, "filter", "every infeasible row has a reason")
    some = rows[::2]
    part = plugin.filter(pod, snapshot, some).feasible
    _promise(np.array_equal(part, feasible[::2]), plugin, "filter", "a row's answer is its own")
    twin = replace(pod, metadata=replace(pod.metadata, name="twin", uid="uid-twin"))
    whole = getattr(plugin, "reads_metadata", True)
    if shape_key(pod, metadata=whole) == shape_key(twin, metadata=whole):
        same = np.array_equal(plugin.filter(twin, snapshot, rows).feasible, feasible)
        _promise(same, plugin, "filter", "pods of one shape get one answer")
    if not whole:
        kept = (
            _labels_that_rules_read(pod, snapshot) if getattr(plugin, "reads_selected_labels", False) else {}
        )
        metadata = replace(
            twin.metadata, labels={"l": "x", **kept}, annotations={"a": "x", **annotations_read(pod)}
        )
        other = replace(twin, metadata=metadata)
        same = np.array_equal(plugin.filter(other, snapshot, rows).feasible, feasible)
        text = "reads no labels or annotations but those of the shape (reads_metadata is False)"
        _promise(same, plugin, "filter", text)
    return verdict


def _labels_that_rules_read(pod: Pod, snapshot: Snapshot) -> dict[str, str]:
    return dict(labels_read(pod, snapshot.label_keys_read | label_keys_read(pod)))


def _check_example(plugin: Example, verdict: NodeVerdict, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    """On every row with a reason there is something to show, in one line that can be read."""
    for reason in verdict.reasons:
        for row in rows[reason.rejected].tolist():
            shown = plugin.example(pod, snapshot, row, reason.text)
            _promise(isinstance(shown, str) and bool(shown), plugin, "example", "shows every reason it gives")
            _promise(shown.isprintable(), plugin, "example", "is one line")


def _check_rows_changed(plugin: Filter, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    """After an assignment, rows that are not named answer as before."""
    feasible = plugin.filter(pod, snapshot, rows).feasible
    for placed in (pod, make_pod("other", cpu=1, gpu=1, host_ports=[80], labels={"app": "other"})):
        for row in rows.tolist():
            fork = snapshot.fork()
            fork.place(placed, row)
            changed = plugin.rows_changed(placed, row, pod, fork)
            anywhere = plugin.rows_changed(placed, ANY_ROW, pod, fork)
            _promise(
                anywhere is None or anywhere.size > 0 or (changed is not None and not changed.size),
                plugin,
                "rows_changed",
                "gives something for ANY_ROW if it does for some row",
            )
            minds = not isinstance(plugin, Silence) or not plugin.is_silent(pod, fork)
            is_nothing = changed is not None and not changed.size
            _promise(minds or is_nothing, plugin, "is_silent", "is False where a pod changes some row")
            if changed is None:
                continue
            _promise(
                isinstance(changed, np.ndarray) and changed.dtype == np.int32,
                plugin,
                "rows_changed",
                "gives rows as int32, or None",
            )
            now = plugin.filter(pod, fork, rows).feasible
            kept = (now == feasible)[~np.isin(rows, changed)]
            _promise(bool(kept.all()), plugin, "rows_changed", "names every row whose answer changes")


def _check_silence(plugin: Silence, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    """Who has nothing to say lets every row pass, counts none, scores all alike, with copies placed, too."""
    if not plugin.is_silent(pod, snapshot):
        return
    fork = snapshot.fork()
    for row in rows[:1].tolist():
        fork.place(pod, row)
    for view in (snapshot, fork):
        _promise(plugin.is_silent(pod, view), plugin, "is_silent", "holds when copies are placed")
        refuses = isinstance(plugin, Filter) and not plugin.filter(pod, view, rows).feasible.all()
        _promise(not refuses, plugin, "is_silent", "refuses no row then")
        counts = isinstance(plugin, Capacity) and (plugin.capacity(pod, view, rows) < UNLIMITED).any()
        _promise(not counts, plugin, "is_silent", "counts no copies then")
        prefers = isinstance(plugin, Score) and len(set(plugin.score(pod, view, rows).tolist())) > 1
        _promise(not prefers, plugin, "is_silent", "scores all rows alike then")


def _check_row_alone(plugin: Any, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    """What is on other rows, and which other nodes there are, changes nothing that is said of a row."""
    expected = _said(plugin, pod, snapshot, rows)
    for placed in (pod, make_pod("other", cpu=1, gpu=1, host_ports=[80], labels={"app": "other"})):
        for index, row in enumerate(rows.tolist()):
            fork = snapshot.fork()
            for elsewhere in rows.tolist():
                if elsewhere != row:
                    fork.place(placed, elsewhere)
            said = _said(plugin, pod, fork, rows[index : index + 1])
            kept = all(answer[0] == before[index] for answer, before in zip(said, expected, strict=True))
            _promise(kept, plugin, "judges_row_alone", "is true of pods on other nodes")
    if getattr(plugin, "reads_pods", True) is False and not isinstance(plugin, Capacity):
        full = snapshot.fork()
        for row in rows.tolist():
            full.place(pod, row)
        same = zip(_said(plugin, pod, full, rows), expected, strict=True)
        kept = all(np.array_equal(answer, before) for answer, before in same)
        _promise(kept, plugin, "reads_pods", "False is true of filter and score")
    for index, row in enumerate(rows.tolist()):
        said = _said(plugin, pod, _others_changed(snapshot, row), rows[index : index + 1])
        kept = all(answer[0] == before[index] for answer, before in zip(said, expected, strict=True))
        _promise(kept, plugin, "judges_row_alone", "is true of what other nodes are like")


def _said(plugin: Any, pod: Pod, snapshot: Snapshot, rows: Int32) -> list[NDArray[Any]]:
    """All that a node-wise plugin says of these rows."""
    said: list[NDArray[Any]] = []
    if isinstance(plugin, Filter):
        said.append(plugin.filter(pod, snapshot, rows).feasible)
    if isinstance(plugin, Capacity):
        said.append(plugin.capacity(pod, snapshot, rows))
    if isinstance(plugin, Score):
        said.append(plugin.score(pod, snapshot, rows))
    return said


def _others_changed(snapshot: Snapshot, row: int) -> Snapshot:
    """The same rows, all nodes but this one without labels and images, and cordoned."""
    cluster = make_cluster()
    for other, node in enumerate(snapshot.nodes):
        if node is None:
            cluster.node(f"gone-{other}")
        elif other == row:
            cluster.state.apply_node(node)
        else:
            metadata, status = replace(node.metadata, labels={}), replace(node.status, images=None)
            spec = replace(node.spec, unschedulable=True, taints=[])
            cluster.state.apply_node(replace(node, metadata=metadata, spec=spec, status=status))
        for pod in snapshot.pods_on(other):
            cluster.state.apply_pod(pod)
    for other, node in enumerate(snapshot.nodes):
        if node is None:
            cluster.state.remove_node(f"gone-{other}")
    return cluster.snapshot()


def _check_capacity(plugin: Capacity, judge: Filter, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    """As many copies as counted fit, and one more does not."""
    counts = plugin.capacity(pod, snapshot, rows)
    shape_kept = counts.shape == rows.shape and counts.dtype == np.int64
    _promise(shape_kept, plugin, "capacity", "is [K] of int64")
    in_range = bool(((counts >= 0) & (counts <= UNLIMITED)).all())
    _promise(in_range, plugin, "capacity", "is between 0 and UNLIMITED")
    for index, row in enumerate(rows.tolist()):
        fork = snapshot.fork()
        for copy in range(min(int(counts[index]), _COPIES_MAX) + 1):
            fits = bool(judge.filter(pod, fork, rows[index : index + 1]).feasible[0])
            _promise(fits == (copy < counts[index]), plugin, "capacity", "agrees with filter, copy by copy")
            fork.place(pod, row)


def _check_packing(plugin: PackingRule, judge: Filter, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    """Who may share a node by the packing may by the filter, in one order or another; nobody else."""
    pods = (pod, make_pod("other", cpu=1, gpu=1, host_ports=[80], labels={"app": "other"}))
    packing = plugin.packing(pods, snapshot, rows)
    if packing is None:
        return
    right = packing.feasible.shape == (2, len(rows)) and packing.conflict.shape == (2, 2)
    right = right and packing.room.shape == (len(rows), packing.need.shape[1])
    _promise(right, plugin, "packing", "is of the shapes [S] and the rows [K] asked about")
    _promise(np.array_equal(packing.conflict, packing.conflict.T), plugin, "packing", "excludes both ways")
    for index, row in enumerate(rows.tolist()):
        for chosen in ((0,), (1,), (0, 1), (0, 0)):
            stated = _allows(packing, index, chosen)
            orders = (chosen, chosen[::-1])
            fits = any(_fit_in_turn(judge, [pods[i] for i in order], snapshot, row) for order in orders)
            _promise(stated == fits, plugin, "packing", "agrees with filter, member by member")


def _allows(packing: Packing, index: int, chosen: Sequence[int]) -> bool:
    """Whether the packing lets members of these shapes share the node."""
    node = slice(index, index + 1)
    rules = tuple(at(rule, np.array([index])) for rule in packing.rules)
    here = Packing(packing.room[node], packing.need, packing.conflict, packing.feasible[:, node], rules)
    counts = np.array([[chosen.count(0)], [chosen.count(1)]], dtype=np.int64)
    problem = group_problem(
        here, counts[:, 0], needed=len(chosen), domains=(np.zeros(1, dtype=np.int64),), is_exact=True
    )
    return is_placement(problem, counts)


def _fit_in_turn(judge: Filter, pods: Sequence[Pod], snapshot: Snapshot, row: int) -> bool:
    fork = snapshot.fork()
    for pod in pods:
        if not judge.filter(pod, fork, np.array([row], dtype=np.int32)).feasible[0]:
            return False
        fork.place(pod, row)
    return True


def _check_score(plugin: Score, pod: Pod, snapshot: Snapshot, rows: Int32) -> None:
    score = plugin.score(pod, snapshot, rows)
    shape_kept = score.shape == rows.shape and score.dtype == np.float64
    _promise(shape_kept, plugin, "score", "is [K] of float64")
    _promise(bool(((score >= 0) & (score <= 100)).all()), plugin, "score", "is between 0 and 100")
    part = plugin.score(pod, snapshot, rows[::2])
    _promise(np.array_equal(part, score[::2]), plugin, "score", "a row's score is its own")
    _promise(np.array_equal(plugin.score(pod, snapshot, rows), score), plugin, "score", "is the same again")
