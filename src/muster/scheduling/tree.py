"""A group, or a tree of them, on a board: candidate placements, each on a branch of its own, the best kept.

In come a cast (a pod group, a composite group with its children, or a lone pod), rows and a board; out comes
an `Outcome`.  What a group is tried in is what the generator plugins say (KEP-5732), inside the rows of its
parent; what is chosen is what the placement scores say, of equals the one named first.

A composite (KEP-6012) is tried as stock does it: its groups in order, each with all that fits.  If that
leaves somebody out, it is tried again with minima before surplus: first as many groups as it needs with as
few members as they need, then every other group's minimum, then everybody else; and, where its minimum is
not placed, in a few other orders of its groups, unless they are alike.  A group of it that fails is tried
shape by shape.  What that misses of a minimum, `search.py` finds.
Next: `attempt.py`.
"""

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from itertools import chain, islice, permutations

import numpy as np

from muster.base.arrays import Bool, Float64, Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group
from muster.framework.points import PlacementTotals
from muster.framework.runner import Runner
from muster.framework.status import Status, Verdict
from muster.placement.domains import Placements, intersect, partition
from muster.placement.laying import packing_ranks
from muster.scheduling.board import Board, Findings, Outcome, name_first
from muster.scheduling.contradictions import pinned_members
from muster.scheduling.leaf import LeafTrial
from muster.scheduling.likeness import kinds_of, orders_by_shape, shape_of
from muster.scheduling.members import Cast, Member
from muster.scheduling.room import are_enough, find_room, score_by_counting

LEAF_WORK_MAX = 100_000  # rows judged for other orders of members, in one try at a tree: some 30 ms
LEAF_WORK_MIN = 4_000  # what any order costs: 24 of them are tried on few nodes
ORDERS_MAX = 6  # orders of siblings that are tried where that of creation does not place the minimum


class Aim(Enum):
    """How much of a group is placed."""

    NEEDED = auto()  # no more groups and members than its minimum
    MINIMA = auto()  # every group with its minimum
    EVERYTHING = auto()  # all that fits


class TreeTrial:
    """One try at placing the waiting members of a root.

    `explain`: whether a refusal says what refused whom.
    """

    def __init__(self, runner: Runner, *, explain: bool = True) -> None:
        self._runner = runner
        self._explain = explain
        self._leaf_trial: LeafTrial | None = None
        self._bias: Float64 | None = None
        self._leaf_work_left = LEAF_WORK_MAX

    @property
    def being_tried(self) -> Sequence[Member]:
        """Members that were asked about last, should a plugin have raised."""
        return self._leaf_trial.being_tried if self._leaf_trial is not None else ()

    def place_root(self, cast: Cast, board: Board, rows: Int32) -> Outcome:
        """Place what can be placed of this root inside these rows; the board given stays as it is."""
        return self._place(cast, board, rows, Aim.EVERYTHING)

    def _place(self, cast: Cast, board: Board, rows: Int32, aim: Aim) -> Outcome:
        """Place what the aim asks for in the best placement inside these rows."""
        group = cast.group
        if group is None or not rows.size:
            return self._place_in(cast, board, rows, aim)
        pinned = pinned_members(cast, board.fork)
        pinned += [(member.pod, row) for leaf in cast.leaves() for member, row in board.placed(leaf)]
        placements = self._runner.placements(group, board.fork, rows, pinned=pinned)
        if isinstance(placements, Status):
            return self._refuse(cast, board, placements)
        if placements.count == 0:
            return self._refuse(cast, board, Status.unschedulable(_nowhere(group, board.fork, rows)))
        if group.preferred_levels:
            return self._place_packed(cast, group, board, placements, aim)
        return self._place_in_one_of(cast, group, board, placements, aim)

    def _place_in_one_of(
        self, cast: Cast, group: Group, board: Board, placements: Placements, aim: Aim
    ) -> Outcome:
        """Place the group in the best of these placements."""
        if placements.count == 1:
            outcome = self._place_in(cast, board, placements.rows_of(0), aim)
            if outcome.ok or placements.names[0] == "":
                return outcome
            return _in_words(cast, outcome, placements, 0, self._rejectors(cast, board, placements))
        if cast.is_composite:
            return self._try_each(cast, group, board, placements, placements, aim)
        return self._place_in_best(cast, group, board, placements, aim)

    def _refuse(self, cast: Cast, board: Board, status: Status) -> Outcome:
        findings = Findings()
        findings.rejectors.update((status.plugin,) if status.plugin else self._runner.generators)
        if cast.group is not None and not cast.is_composite:
            findings.culprit = cast
            findings.group_texts[cast.group.key] = status.message
        return Outcome(status, board, findings)

    def _place_in(self, cast: Cast, board: Board, rows: Int32, aim: Aim) -> Outcome:
        """Place the group in these very rows."""
        if cast.is_composite:
            return self._place_tree_in(cast, board, rows, aim)
        return self._place_leaf_in(cast, board, rows, aim)

    def _place_leaf_in(self, cast: Cast, board: Board, rows: Int32, aim: Aim) -> Outcome:
        """Place a group of members in these rows; one of a tree shape by shape, where its order fails.

        A root that fails is searched for; of a tree whose minimum is placed nobody searches for the others.
        """
        waiting = still_waiting(cast, board)
        outcome = self._try_leaf(cast, waiting, board, rows, aim)
        if outcome.ok or outcome.is_error or cast.parent is None:
            return outcome
        shapes = {shape_of(member, board.fork, self._runner) for member in waiting}
        for order in orders_by_shape(waiting, board.fork, self._runner):
            if self._leaf_work_left <= 0:
                break
            self._leaf_work_left -= LEAF_WORK_MIN + rows.size * len(shapes)
            again = self._try_leaf(cast, order, board, rows, aim)
            if again.ok:
                return again
        return outcome

    def _try_leaf(
        self, cast: Cast, waiting: Sequence[Member], board: Board, rows: Int32, aim: Aim
    ) -> Outcome:
        limit = None
        if aim is not Aim.EVERYTHING:
            limit = max(0, cast.missing_count - len(board.placed(cast)))
        self._leaf_trial = LeafTrial(
            cast,
            waiting,
            board.branch(),
            self._runner,
            rows,
            limit=limit,
            bias=self._bias,
            explain=self._explain,
        )
        return self._leaf_trial.run()

    # ── composites ───────────────────────────────────────────────────────────────────────────────

    def _place_tree_in(self, cast: Cast, board: Board, rows: Int32, aim: Aim) -> Outcome:
        """Place a composite in these rows; of everything first as stock does, then with minima first.

        Where even that fails, siblings that are unlike may stand in each other's way: other orders of them
        are tried, too.
        """
        whole = self._place_children(cast, board, rows, aim)
        if aim is not Aim.EVERYTHING or whole.is_error:
            return whole
        has_surplus = _has_surplus(cast, board)
        if whole.ok and not (has_surplus and _left_out(cast, whole.board)):
            return whole
        orders = self._sibling_orders(cast, board)
        for order in orders[: 1 if whole.ok else None]:
            if has_surplus or order is not orders[0]:
                outcome = self._place_minima_first(cast, board, rows, order)
                if outcome is not None:
                    return outcome
        return whole

    def _place_minima_first(
        self, cast: Cast, board: Board, rows: Int32, order: Sequence[Cast]
    ) -> Outcome | None:
        """First what the composite needs, then every group's minimum, then all; None if it needs more."""
        outcome = self._place_children(cast, board, rows, Aim.NEEDED, order)
        if outcome.is_error or not outcome.ok:
            return None
        return self.place_others(cast, outcome.board, rows, order)

    def place_others(
        self, cast: Cast, board: Board, rows: Int32, order: Sequence[Cast] | None = None
    ) -> Outcome:
        """Where the minimum is on the board: every other group's minimum, then everybody else."""
        if not cast.is_composite:
            return self._place_in(cast, board, rows, Aim.EVERYTHING)
        outcome = self._place_children(cast, board, rows, Aim.MINIMA, order)
        if outcome.is_error:
            return outcome
        return self._place_children(cast, outcome.board, rows, Aim.EVERYTHING, order)

    def _sibling_orders(self, cast: Cast, board: Board) -> list[tuple[Cast, ...]]:
        """That of creation, its reverse, then some others; siblings that are alike stay as they are."""
        kinds = kinds_of(cast.sorted_children(), board.fork, self._runner)
        others = (tuple(chain.from_iterable(order)) for order in permutations(kinds[::-1]))
        first = tuple(cast.sorted_children())
        return [first, *islice((order for order in others if order != first), ORDERS_MAX - 1)]

    def _place_children(
        self, cast: Cast, board: Board, rows: Int32, aim: Aim, order: Sequence[Cast] | None = None
    ) -> Outcome:
        """Try the groups of a composite in order; one that fails leaves no trace but its reasons."""
        children = cast.sorted_children() if order is None else order
        findings, placed_groups = Findings(), 0
        status = self._feasible(cast, placed_groups, len(children))
        for index, child in enumerate(children):
            enough = aim is Aim.NEEDED and status.ok
            if enough or status.verdict is Verdict.UNSCHEDULABLE:
                break
            outcome = self._place(child, board, rows, aim)
            if outcome.is_error:
                return outcome
            findings.merge(outcome.findings)
            if outcome.ok:
                board = outcome.board
                placed_groups += 1
            elif child.is_composite and not outcome.findings.group_texts:
                _tell_leaves(child, outcome.status.message, findings)
            status = self._feasible(cast, placed_groups, len(children) - index - 1)
        if not status.ok:
            findings.rejectors.add(status.plugin)
            status = _with_cause(status, findings)
        return Outcome(status, board, findings)

    def _feasible(self, cast: Cast, placed_groups: int, remaining: int) -> Status:
        if cast.group is None:
            return Status.unschedulable("its composite pod group does not exist")
        return self._runner.placement_feasible(cast.group, assigned=placed_groups, remaining=remaining)

    # ── preferred levels ─────────────────────────────────────────────────────────────────────────

    def _place_packed(
        self, cast: Cast, group: Group, board: Board, placements: Placements, aim: Aim
    ) -> Outcome:
        """As many members as without the preference, in the narrowest domain that holds them all."""
        columns = [board.fork.labels.column(key).ids for key in group.preferred_levels]
        rows = placements.all_rows()
        for key, ids in zip(group.preferred_levels, columns, strict=True):
            if (ids[rows] < 0).all():
                text = f"no node has the label {key}, which the group prefers to be packed by"
                return self._refuse(cast, board, Status.unschedulable(text))
        widest = self._place_in_one_of(cast, group, board, placements, aim)
        if not widest.ok:
            return widest
        most = len(widest.board.all_placed())
        for depth in range(len(columns), -1, -1):
            tier = placements
            if depth:
                values = board.fork.labels.column(group.preferred_levels[depth - 1]).values
                tier = intersect(placements, partition(rows, columns[depth - 1][rows], values))
                tier = tier.keep(self._holding_pinned(cast, board, tier))
            if not tier.count:
                continue
            self._bias = self._packing_bias(cast, board, tier.all_rows(), columns[depth:])
            outcome = self._place_in_one_of(cast, group, board, tier, aim)
            self._bias = None
            if outcome.is_error or (outcome.ok and len(outcome.board.all_placed()) >= most):
                return outcome
        return widest

    def _holding_pinned(self, cast: Cast, board: Board, tier: Placements) -> Bool:
        """[D] placements in which all members are that have a place already; all where there are none."""
        pinned = [row for _, row in pinned_members(cast, board.fork)]
        pinned += [row for leaf in cast.leaves() for _, row in board.placed(leaf)]
        return np.array(
            [np.isin(pinned, tier.rows_of(index)).all() for index in range(tier.count)], dtype=np.bool_
        )

    def _packing_bias(self, cast: Cast, board: Board, rows: Int32, levels: Sequence[Int32]) -> Float64 | None:
        """[N] rows of few domains of these levels before the others, by what the first member finds there."""
        waiting = [member for leaf in cast.leaves() for member in still_waiting(leaf, board)]
        if not levels or not waiting:
            return None
        pod, fork = waiting[0].pod, board.fork
        feasible = self._runner.filter(pod, fork, rows).feasible
        counted = self._runner.capacity(pod, fork, rows)
        fits = np.where(feasible, 1 if counted is None else np.minimum(counted, len(waiting)), 0)
        bias = np.zeros(len(fork.live), dtype=np.float64)
        bias[rows] = -packing_ranks(fits, [ids[rows] for ids in levels], len(waiting))
        return bias

    # ── choice ───────────────────────────────────────────────────────────────────────────────────

    def _place_in_best(
        self, cast: Cast, group: Group, board: Board, placements: Placements, aim: Aim
    ) -> Outcome:
        """Weigh the placements by counting; try each only where the best does not take what was counted."""
        runner = self._runner
        waiting = still_waiting(cast, board)
        before = cast.placed_count + len(board.placed(cast))
        room = find_room(waiting, board.fork, placements, runner)
        enough = are_enough(group, room.takes + before, runner) & (room.takes > 0)
        if not enough.any():
            nearest = int(np.argmax(room.takes))
            outcome = self._place_in(cast, board, placements.rows_of(nearest), aim)
            return _in_words(cast, outcome, placements, nearest, self._rejectors(cast, board, placements))
        roomy = enough & (room.holds >= group.needed)  # others may come where members have ended
        enough = roomy if roomy.any() else enough
        scores = score_by_counting(group, room, board.fork, placements, before=before, runner=runner)
        best = int(np.argmax(np.where(enough, scores, -np.inf)))
        outcome = self._place_in(cast, board, placements.rows_of(best), Aim.EVERYTHING)
        taken = len(outcome.board.all_placed()) - len(board.all_placed())
        # An upper bound that is reached, and that no other exceeds, is the best there is.
        is_best = taken == room.takes[best] and (room.is_exact or taken == room.takes[enough].max())
        if outcome.is_error or (outcome.ok and is_best and aim is Aim.EVERYTHING):
            return outcome
        if outcome.ok and is_best:
            return self._place_in(cast, board, placements.rows_of(best), aim)
        return self._try_each(cast, group, board, placements.keep(enough), placements, aim)

    def _try_each(
        self,
        cast: Cast,
        group: Group,
        board: Board,
        candidates: Placements,
        everything: Placements,
        aim: Aim,
    ) -> Outcome:
        """Try the whole group in every candidate, and place what the aim asks for in the best that fits."""
        fitting: list[tuple[int, Outcome]] = []
        failed: list[tuple[int, Outcome]] = []
        for index in range(candidates.count):
            outcome = self._place_in(cast, board, candidates.rows_of(index), Aim.EVERYTHING)
            if outcome.is_error:
                return outcome
            fits = outcome.ok and len(outcome.board.all_placed()) > len(board.all_placed())
            (fitting if fits else failed).append((index, outcome))
        if not fitting:
            index, outcome = max(failed, key=lambda pair: len(pair[1].board.all_placed()))
            name = candidates.names[index]
            rejectors = self._rejectors(cast, board, everything)
            return _in_words(cast, outcome, everything, everything.names.index(name), rejectors)
        index, outcome = fitting[int(np.argmax(self._score(cast, group, fitting, candidates)))]
        if aim is Aim.EVERYTHING:
            return outcome
        return self._place_in(cast, board, candidates.rows_of(index), aim)

    def _rejectors(self, cast: Cast, board: Board, placements: Placements) -> set[str]:
        """Every plugin that keeps a waiting member from a node of any placement: each can end the refusal."""
        runner, rows = self._runner, placements.all_rows()
        if not self._explain:
            return set(runner.generators)
        labels = runner.labels_read(board.fork.label_keys_read)
        pods = {
            member.shape(metadata=runner.reads_metadata, labels=labels): member.pod
            for leaf in cast.leaves()
            for member in still_waiting(leaf, board)
        }
        return runner.rejectors(pods.values(), board.fork, rows) | set(runner.generators)

    def _score(
        self, cast: Cast, group: Group, fitting: Sequence[tuple[int, Outcome]], candidates: Placements
    ) -> Float64:
        forks = [(outcome.board.fork, candidates.rows_of(index)) for index, outcome in fitting]
        members = [cast.placed_count + len(outcome.board.all_placed()) for _, outcome in fitting]
        totals = PlacementTotals(
            snapshot=forks[0][0],
            requested=np.array([fork.requested[rows].sum(axis=0, dtype=np.float64) for fork, rows in forks]),
            allocatable=np.array(
                [fork.allocatable[rows].sum(axis=0, dtype=np.float64) for fork, rows in forks]
            ),
            member_count=np.array(members, dtype=np.int64),
        )
        return self._runner.score_placements(group, totals)


def still_waiting(cast: Cast, board: Board) -> list[Member]:
    """Members of a leaf that are not on the board yet, in the order in which they are tried."""
    placed = {member.key for member, _ in board.placed(cast)}
    return [member for member in cast.waiting() if member.key not in placed]


def _has_surplus(cast: Cast, board: Board) -> bool:
    """Whether some group of the tree has more to place than its minimum: only then does the order matter."""
    if not cast.is_composite:
        return len(still_waiting(cast, board)) > max(0, cast.missing_count - len(board.placed(cast)))
    needed = cast.group.needed if cast.group is not None else 1
    return len(cast.children) > needed or any(_has_surplus(child, board) for child in cast.children.values())


def _left_out(cast: Cast, board: Board) -> bool:
    return any(still_waiting(leaf, board) for leaf in cast.leaves())


def _with_cause(status: Status, findings: Findings) -> Status:
    """The refusal of a composite with the words of the first pod group that failed on its own account."""
    text = "; ".join(filter(None, (status.message, name_first(findings.group_texts))))
    return Status(status.verdict, text, status.plugin)


def _tell_leaves(cast: Cast, text: str, findings: Findings) -> None:
    """No pod group of a composite failed on its own account: they wait for what the composite lacks."""
    who = f"composite pod group {cast.group.key}: " if cast.group is not None else ""
    for leaf in cast.leaves():
        if leaf.group is not None and leaf.waiting():
            findings.group_texts[leaf.group.key] = f"{who}{text}"


def _nowhere(group: Group, snapshot: Snapshot, rows: Int32) -> str:
    keys = " and ".join(group.topology_keys)
    nodes = "1 node has" if rows.size == 1 else f"{rows.size} nodes have"
    example = f", {snapshot.node_names[rows[0]]} for example" if rows.size else ""
    return f"no feasible placements found: none of {nodes} the label {keys}{example}"


def _in_words(
    cast: Cast, outcome: Outcome, placements: Placements, nearest: int, rejectors: Iterable[str]
) -> Outcome:
    """Say on a refusal how many placements there are, and of which one the reason speaks."""
    if outcome.ok or outcome.is_error:
        return outcome
    name, count = placements.names[nearest], placements.rows_of(nearest).size
    outcome.findings.rejectors.update(rejectors)
    outcome.findings.nearest = (name, placements.rows_of(nearest))
    text = (
        f"0/{placements.count} placements are available, first placement status ({name}, "
        f"{count} of {placements.all_rows().size} nodes): "
        f"{outcome.status.message}"
    )
    status = Status(outcome.status.verdict, text, outcome.status.plugin)
    if cast.group is not None and not cast.is_composite:
        outcome.findings.group_texts[cast.group.key] = text
    return Outcome(status, outcome.board, outcome.findings)
