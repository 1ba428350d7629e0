"""Why members found no room, in words: a member's own summary, and what its group is told.

In come the filters' verdicts of a failed try and who holds what; out go texts that name the constraint, the
counts and the nearest fit.  The arithmetic is `placement/explain.py`'s.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from muster.api.core import Pod
from muster.base.arrays import Bool
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import UnsupportedField
from muster.framework.runner import Filtered, Runner
from muster.placement.explain import explain_gang, summarize_nodes
from muster.placement.feasibility import Rejection, count_reasons
from muster.placement.relief import RunningGroup
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import Cast, Member


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


def explain_group(
    count_text: str,
    shortfalls: Sequence[Shortfall],
    cast: Cast,
    waiting: Sequence[Member],
    snapshot: Snapshot,
    runner: Runner,
    running: Sequence[RunningGroup],
) -> str:
    """What a group that cannot be placed is told: the count it misses, what it needs, and the nearest fit."""
    parts = [count_text] if count_text else []
    fields = [shortfall.text for shortfall in shortfalls if shortfall.by_fields]
    if fields:
        return "; ".join((*parts, *fields))
    needed = max(1, (cast.group.needed if cast.group is not None else 1) - cast.placed_count)
    if needed <= len(waiting):
        facts = explain_gang(snapshot, _shapes(waiting, snapshot, runner), needed, running)
        parts.append(facts.sentence())
    parts += [shortfall.text for shortfall in shortfalls[:1] if len(parts) < 2 or len(shortfall.plugins) > 1]
    return "; ".join(parts)


def _shapes(waiting: Sequence[Member], snapshot: Snapshot, runner: Runner) -> list[tuple[Pod, int, Bool]]:
    """A pod of each shape among the members, how many there are, and the rows open to them."""
    counts: dict[ShapeKey, int] = {}
    pods: dict[ShapeKey, Pod] = {}
    for member in waiting:
        shape = member.shape(metadata=runner.reads_metadata)
        counts[shape] = counts.get(shape, 0) + 1
        pods.setdefault(shape, member.pod)
    return [(pods[shape], count, runner.usable(pods[shape], snapshot)) for shape, count in counts.items()]
