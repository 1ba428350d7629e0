"""The state of one try at a tree of groups: a fork of the snapshot and who has been placed on it.

A branch is a trial of its own; whoever fails drops the branch, whoever succeeds hands it on.  `Outcome` is
what became of one group on a branch.  Next: `leaf.py` and `tree.py`, which place.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import GroupKey, PodKey
from muster.framework.status import Status, Verdict
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import Cast, Member
from muster.scheduling.reasons import Shortfall

Placed = tuple[tuple[Member, int], ...]


class Board:
    """A fork, and the members placed on it with their rows, by the cast of their own group."""

    __slots__ = ("_placed", "fork")

    def __init__(self, fork: Snapshot, placed: Mapping[Cast, Placed] | None = None) -> None:
        self.fork = fork
        self._placed = dict(placed or {})

    def branch(self) -> "Board":
        """A trial copy."""
        return Board(self.fork.fork(), self._placed)

    def add(self, cast: Cast, placed: Iterable[tuple[Member, int]]) -> None:
        """Note members of a leaf that are on the fork now."""
        found = (*self.placed(cast), *placed)
        if found:
            self._placed[cast] = found

    def placed(self, cast: Cast) -> Placed:
        """Members of this leaf placed on the board, in the order in which they were."""
        return self._placed.get(cast, ())

    def all_placed(self) -> Placed:
        """Everybody placed on the board."""
        return tuple(pair for pairs in self._placed.values() for pair in pairs)


class Findings:
    """Why members found no room, gathered over a try.

    `own_texts` are of members tried without success, `group_texts` of leaves that failed on their own
    account; `culprit` is the first of those.  `nearest` is the placement of which the refusal of the root
    speaks, where there are several: its name and rows.
    """

    __slots__ = ("culprit", "group_texts", "nearest", "own_texts", "rejectors", "shortfalls")

    def __init__(self) -> None:
        self.own_texts: dict[PodKey, str] = {}
        self.group_texts: dict[GroupKey, str] = {}
        self.shortfalls: dict[ShapeKey, Shortfall] = {}
        self.rejectors: set[str] = set()
        self.culprit: Cast | None = None
        self.nearest: tuple[str, Int32] | None = None

    def merge(self, other: "Findings") -> None:
        """Add what was found elsewhere; what is known already stays."""
        self.own_texts = {**other.own_texts, **self.own_texts}
        self.group_texts = {**other.group_texts, **self.group_texts}
        self.shortfalls = {**other.shortfalls, **self.shortfalls}
        self.rejectors |= other.rejectors
        self.culprit = self.culprit or other.culprit


def name_first(group_texts: Mapping[GroupKey, str]) -> str:
    """The words of the first pod group that failed on its own account, with its name; "" where none did."""
    return next((f"pod group {key}: {text}" for key, text in group_texts.items()), "")


class Outcome(Struct, frozen=True):
    """What became of one group on a board: success means its minimum is placed (before or now)."""

    status: Status
    board: Board
    findings: Findings

    @property
    def ok(self) -> bool:
        """Whether the group's minimum is placed."""
        return self.status.ok

    @property
    def is_error(self) -> bool:
        """Whether the whole try must be given up."""
        return self.status.verdict is Verdict.ERROR
