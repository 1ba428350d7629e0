"""Why members found no room, in words: a member's own summary, and what its group is told.

In come the filters' verdicts of a failed try and who holds what; out go texts that name the constraint, the
counts and the nearest fit.  The arithmetic is `placement/explain.py`'s.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import UnsupportedField
from muster.framework.runner import Filtered, Runner
from muster.placement.explain import explain_gang, summarize_nodes
from muster.placement.feasibility import Rejection, count_reasons
from muster.placement.shapes import ShapeKey
from muster.scheduling.holders import Holders
from muster.scheduling.members import Cast, Member, Members


class Shortfall(Struct, frozen=True):
    """One shape that found no room: a pod of it, the text it is told, and the plugins that said no.

    `by_fields`: it asks for something that is not built, so no amount of room would help.
    """

    pod: Pod
    text: str
    plugins: frozenset[str]
    by_fields: bool = False


def shortfall_of_fields(pod: Pod, fields: Iterable[tuple[str, UnsupportedField]]) -> Shortfall:
    """The pod asks for something that is not built: name each such field."""
    named = tuple(fields)
    text = "; ".join(f"{field.path}: {field.why}" for _, field in named)
    return Shortfall(pod, text, frozenset(plugin for plugin, _ in named), by_fields=True)


def shortfall_of_filters(pod: Pod, filtered: Filtered, *, row_count: int) -> Shortfall:
    """Summarise what the filters said: "0/3 nodes are available: 2 Insufficient cpu, 1 …"."""
    rejections = [
        Rejection(named.plugin, named.reason.text, named.reason.rejected) for named in filtered.reasons
    ]
    text = summarize_nodes(row_count, count_reasons(rejections, row_count))
    return Shortfall(pod, text, frozenset(rejection.plugin for rejection in rejections))


class Explanations:
    """What groups that cannot be placed are told; groups that ask alike are told alike, searched for once."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._holders = Holders()
        self._snapshot: Snapshot | None = None
        self._sentences: dict[tuple[object, ...], str] = {}  # of this snapshot

    def explain(
        self,
        count_text: str,
        shortfalls: Sequence[Shortfall],
        cast: Cast,
        waiting: Sequence[Member],
        snapshot: Snapshot,
        members: Members,
        *,
        nearest: tuple[str, Int32] | None = None,
    ) -> str:
        """Give the count that is missed, what is needed and the nearest fit.  Raises PluginError.

        `nearest`: name and rows of the placement to speak of, where the group must be inside one.
        """
        parts = [count_text] if count_text else []
        fields = [shortfall.text for shortfall in shortfalls if shortfall.by_fields]
        if fields:
            return "; ".join((*parts, *fields))
        needed = max(1, cast.missing_count)
        if needed <= len(waiting):
            where = f"in {nearest[0]}: " if nearest is not None else ""
            parts.append(where + self._sentence(needed, waiting, snapshot, members, nearest))
        more = [
            short.text
            for short in shortfalls[:1]
            if len(parts) < 2 or len(short.plugins) > 1 or short.plugins.isdisjoint(self._runner.counting)
        ]
        return "; ".join((*parts, *more))

    def _sentence(
        self,
        needed: int,
        waiting: Sequence[Member],
        snapshot: Snapshot,
        members: Members,
        nearest: tuple[str, Int32] | None,
    ) -> str:
        """The nearest fit of members of these shapes."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._sentences = {}
        counts: dict[ShapeKey, int] = {}
        pods: dict[ShapeKey, Pod] = {}
        labels = self._runner.labels_read(snapshot.label_keys_read)
        for member in waiting:
            shape = member.shape(metadata=self._runner.reads_metadata, labels=labels)
            counts[shape] = counts.get(shape, 0) + 1
            pods.setdefault(shape, member.pod)
        inside = snapshot.live
        if nearest is not None:
            inside = np.zeros_like(snapshot.live)
            inside[nearest[1]] = True
        asked = (needed, inside.tobytes(), *counts.items())
        if asked not in self._sentences:
            shapes = [
                (pods[shape], count, self._runner.usable(pods[shape], snapshot) & inside)
                for shape, count in counts.items()
            ]
            running = self._holders.running(members, snapshot)
            self._sentences[asked] = explain_gang(snapshot, shapes, needed, running).sentence()
        return self._sentences[asked]
