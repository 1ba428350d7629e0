"""One try at placing one entity: a pure decision on a frozen snapshot.

In come the entity's members, its group and the snapshot; out comes an `Attempt`: who goes where, or who is
told what.  How members come to places stands in `tree.py` and `leaf.py`; here is what comes before (what
members and group must agree on) and what is made of the outcome.  Next: `cycle.py`, which commits.
"""

from collections.abc import Iterator

from msgspec import Struct

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group, GroupKey, PodKey
from muster.framework.runner import Runner
from muster.scheduling.board import Board, Outcome, name_first
from muster.scheduling.contradictions import find_contradiction, find_fault
from muster.scheduling.device_seats import devices_for
from muster.scheduling.members import Cast, Member
from muster.scheduling.ranks import find_unranked, lay_by_rank
from muster.scheduling.reasons import Shortfall
from muster.scheduling.tree import TreeTrial

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class Attempt(Struct, frozen=True):
    """What a try came to.

    `reason` is empty when the group's minimum is placed and there are `placements` to bind.  `own_texts` are
    of members tried without success, `group_texts` of groups of a tree that failed on their own account;
    every other member that stays is told `message`.  `shortfalls` has one entry for each shape that found no
    room, `unplaced` a pod of each shape by which events are judged: of those, or of all.  `missing` is how
    many members more must find room, 0 where that cannot be said: members of several shapes may stand in
    each other's way.  `never`: why not even the empty cluster has room, "" where it may have.  `devices`:
    GPUs of those whose binding says them.
    `nearest`: name and rows of the placement that was nearest to do.
    """

    placements: tuple[tuple[Member, str], ...] = ()
    devices: dict[PodKey, tuple[int, ...]] = {}
    reason: str = ""
    message: str = ""
    own_texts: dict[PodKey, str] = {}
    group_texts: dict[GroupKey, str] = {}
    missing: int = 0
    never: str = ""
    nearest: tuple[str, Int32] | None = None
    rejectors: frozenset[str] = frozenset()
    shortfalls: tuple[Shortfall, ...] = ()
    unplaced: tuple[Pod, ...] = ()


def attempt(
    cast: Cast, snapshot: Snapshot, runner: Runner, *, rows: Int32 | None = None, explain: bool = True
) -> Attempt:
    """Try to place the waiting members of an entity; a plugin that raises makes an error of it.

    `rows`: only there; None: on every node.  `explain`: False where nobody will ask what refused whom; a
    refusal then names no shortfalls and not all that rejected it.
    """
    fault = find_fault(cast)
    if fault is not None:
        return Attempt(reason=UNSCHEDULABLE, message=fault.message)
    contradiction = find_contradiction(cast, cast.waiting())
    if contradiction is not None:
        return Attempt(reason=SCHEDULER_ERROR, message=contradiction)
    unsupported = _unsupported(cast)
    if unsupported:
        return Attempt(reason=UNSCHEDULABLE, message=unsupported)
    unranked = find_unranked(cast)
    if unranked:
        return Attempt(reason=UNSCHEDULABLE, message=unranked)
    trial = TreeTrial(runner, explain=explain)
    rows = snapshot.live_rows() if rows is None else rows
    try:
        outcome = trial.place_root(cast, Board(snapshot.fork()), rows)
    except PluginError as error:
        return _fail(cast, trial, error)
    return conclude(cast, snapshot, runner, outcome)


def _unsupported(cast: Cast) -> str:
    """What a group asks for that cannot be honoured, "" if nothing; in a tree with the group that asks."""
    texts = []
    for group in groups_of(cast):
        who = f"{group.key}: " if group is not cast.group else ""
        texts += [f"{who}{field.path}: {field.why}" for field in group.unsupported]
    return "; ".join(texts)


def groups_of(cast: Cast) -> Iterator[Group]:
    """The groups of a tree, the root first."""
    if cast.group is not None:
        yield cast.group
    for child in cast.sorted_children():
        yield from groups_of(child)


def _fail(cast: Cast, trial: TreeTrial, error: PluginError) -> Attempt:
    """A plugin raised on one member: that one is told so, the others that another failed."""
    text = f"failed to schedule other pod from a pod group: {error}"
    own = {member.key: str(error) for member in trial.being_tried[:1]}
    if cast.group is None:
        text = str(error)
    return Attempt(reason=SCHEDULER_ERROR, message=text, own_texts=own, rejectors=frozenset({error.plugin}))


def conclude(cast: Cast, snapshot: Snapshot, runner: Runner, outcome: Outcome) -> Attempt:
    """What an outcome means for the members of its root."""
    findings = outcome.findings
    if outcome.is_error:
        return Attempt(
            reason=SCHEDULER_ERROR, message=outcome.status.message, rejectors=frozenset(findings.rejectors)
        )
    found = lay_by_rank(cast, outcome.board, runner) if outcome.ok else ()
    return Attempt(
        placements=tuple((member, snapshot.node_names[row]) for member, row in found),
        devices=devices_for(found, outcome.board.fork),
        reason="" if found else UNSCHEDULABLE,
        message="" if found else outcome.status.message or name_first(findings.group_texts),
        own_texts=findings.own_texts,
        group_texts=findings.group_texts,
        nearest=findings.nearest,
        missing=_missing(cast, outcome, runner, placed=bool(found)),
        rejectors=frozenset(findings.rejectors - {""}),
        shortfalls=tuple(findings.shortfalls.values()),
        unplaced=tuple(short.pod for short in findings.shortfalls.values()),
    )


def _missing(cast: Cast, outcome: Outcome, runner: Runner, *, placed: bool) -> int:
    if not outcome.findings.shortfalls:
        return 0
    labels = runner.labels_read(outcome.board.fork.label_keys_read)
    shapes = {member.shape(metadata=runner.reads_metadata, labels=labels) for member in cast.waiting()}
    if len(shapes) != 1:
        return 0
    if placed or cast.group is None or cast.is_composite:
        return 1
    return max(1, cast.missing_count - len(outcome.board.all_placed()))
