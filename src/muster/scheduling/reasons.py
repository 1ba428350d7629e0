"""Why members found no room, in words: a member's own summary, and what its group is told.

In come the filters' verdicts of a failed try and who holds what; out go texts that name the constraint, the
counts and the nearest fit.  The arithmetic is `placement/explain.py`'s.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.base.errors import PluginError
from muster.base.printing import printable
from muster.cluster.pod_rules import rules_of
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import UnsupportedField
from muster.framework.runner import Filtered, Runner
from muster.placement.explain import GangFacts, explain_gang, summarize_nodes
from muster.placement.feasibility import Rejection, count_reasons
from muster.placement.relief import RunningGroup
from muster.placement.shapes import ShapeKey
from muster.scheduling.holders import Holders, without
from muster.scheduling.members import Cast, Member, Members

EXAMPLES_MAX = 4  # reasons of which a node is shown; the first in the order of the profile
EXAMPLE_LENGTH_MAX = 160
TRIALS_MAX = 3  # ends of others that are tried where rules about pods count
Fits = Callable[[Snapshot], bool]

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Refused(NamedTuple):
    """A filter's reason and the first of the rows that are lost to it."""

    plugin: str
    text: str
    row: int


class Shortfall(Struct, frozen=True):
    """One shape that found no room: a pod of it, the text it is told, and the plugins that said no.

    `by_fields`: it asks for something that is not built, so no amount of room would help.  `refused` are the
    filters' reasons in the order of the text, judged on `fork`: examples of them are made when they are told.
    """

    pod: Pod
    text: str
    plugins: frozenset[str]
    by_fields: bool = False
    refused: tuple[Refused, ...] = ()
    fork: Snapshot | None = None


def shortfall_of_fields(pod: Pod, fields: Iterable[tuple[str, UnsupportedField]]) -> Shortfall:
    """The pod asks for something that is not built: name each such field."""
    named = tuple(fields)
    text = "; ".join(f"{field.path}: {field.why}" for _, field in named)
    return Shortfall(pod, text, frozenset(plugin for plugin, _ in named), by_fields=True)


def shortfall_of_filters(pod: Pod, filtered: Filtered, fork: Snapshot, rows: Int32) -> Shortfall:
    """Summarise what the filters said of these rows: "0/3 nodes are available: 2 Insufficient cpu, 1 …"."""
    rejections = [
        Rejection(named.plugin, named.reason.text, named.reason.rejected) for named in filtered.reasons
    ]
    lost = count_reasons(rejections, len(rows))
    return Shortfall(
        pod,
        summarize_nodes(len(rows), {text: found.rows for text, found in lost.items()}),
        frozenset(rejection.plugin for rejection in rejections),
        refused=tuple(Refused(found.plugin, text, int(rows[found.first])) for text, found in lost.items()),
        fork=fork,
    )


class Explanations:
    """What groups that cannot be placed are told; groups that ask alike are told alike, searched for once."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._holders = Holders()
        self._snapshot: Snapshot | None = None
        self._sentences: dict[tuple[object, ...], str] = {}  # of this snapshot

    def show(
        self, shortfalls: Sequence[Shortfall], known: Mapping[str, str], snapshot: Snapshot
    ) -> dict[str, str]:
        """The text of each shortfall → the same with a node for each reason as an example.

        What is `known` stays as it was said: amounts on the node named then may have changed, and while the
        reasons and their counts have not, nobody is told again.  `snapshot` is what was decided on.
        """
        texts: dict[str, str] = {}
        for short in shortfalls:
            if short.text not in texts and short.refused:
                texts[short.text] = known.get(short.text) or self._with_examples(short, snapshot)
        return texts

    def _with_examples(self, short: Shortfall, snapshot: Snapshot) -> str:
        fork = short.fork or snapshot
        shown = []
        for reason in short.refused[:EXAMPLES_MAX]:
            try:
                what = self._runner.example(reason.plugin, short.pod, fork, reason.row, reason.text)
            except PluginError:  # the reason stands without it
                what = ""
            name = fork.node_names[reason.row]
            shown.append(printable(f"{name}: {what}" if what else name, longest=EXAMPLE_LENGTH_MAX))
        more = len(short.refused) - len(shown)
        others = [f"{more} more"] if more else []
        beside = len(fork.moves) - len(snapshot.moves)
        placed = f" (with {beside} other {'member' if beside == 1 else 'members'} placed)" if beside else ""
        return f"{short.text} For example{placed} {'; '.join((*shown, *others))}."

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
        shown: Mapping[str, str] = _NOTHING,
        fits: Fits | None = None,
    ) -> str:
        """Give the count that is missed, what is needed, the nearest fit, and what the filters said.

        `nearest`: name and rows of the placement to speak of, where the group must be inside one.
        `shown`: texts of shortfalls with their examples.  `fits`: whether the group fits on a fork, by which
        an end of others that looks like enough is checked where rules about pods count.  Raises PluginError.
        """
        parts = [count_text] if count_text else []
        fields = [shortfall for shortfall in shortfalls if shortfall.by_fields]
        if fields:
            return "; ".join((*parts, *(self._of_fields(field, waiting) for field in fields)))
        needed = max(1, cast.missing_count)
        if needed <= len(waiting):
            where = f"in {nearest[0]}: " if nearest is not None else ""
            parts.append(where + self._sentence(needed, waiting, snapshot, members, nearest, fits))
        return "; ".join((*parts, *(shown.get(short.text, short.text) for short in shortfalls[:1])))

    def _of_fields(self, short: Shortfall, waiting: Sequence[Member]) -> str:
        """What is not built, how many members ask for it, and one of them."""
        count = sum(bool(self._runner.unsupported(member.pod)) for member in waiting)
        who = f"{count} of {len(waiting)} members, for example pod {short.pod.metadata.name}"
        return f"{who}: {short.text}"

    def _sentence(
        self,
        needed: int,
        waiting: Sequence[Member],
        snapshot: Snapshot,
        members: Members,
        nearest: tuple[str, Int32] | None,
        fits: Fits | None,
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
            heeds = [self._runner.heeds_pods(pod, snapshot) for pod, _, _ in shapes]
            apart = [heed.is_apart for heed in heeds]
            is_all = all(heed.is_all for heed in heeds) and (len(shapes) == 1 or not any(apart))
            is_all = is_all and not any(rules_of(pod).near for pod in pods.values())

            def find(running: Sequence[RunningGroup]) -> GangFacts:
                return explain_gang(snapshot, shapes, needed, running, apart=apart)

            running = self._holders.running(members, snapshot)
            facts = find(running)
            if not is_all:
                facts = _confirm(facts, find, running, lambda names: without(names, members, snapshot), fits)
            self._sentences[asked] = facts.sentence()
        return self._sentences[asked]


def _confirm(
    facts: GangFacts,
    find: Callable[[Sequence[RunningGroup]], GangFacts],
    running: Sequence[RunningGroup],
    after: Callable[[Sequence[str]], Snapshot],
    fits: Fits | None,
) -> GangFacts:
    """The facts for members with rules about pods: ends of others that a trial confirms, or no ends at all.

    How many nodes more would do is not tried: it stays, and it is said that the rules are left out of it.
    """
    known = facts
    for _ in range(TRIALS_MAX if fits is not None else 0):
        if not facts.endings:
            break
        if fits is not None and fits(after(facts.endings)):
            return replace(facts, more_nodes=None)
        running = [each for each in running if each.name not in facts.endings]
        facts = find(running)
    return replace(known, endings=None if known.endings is None else (), leaves_out_pods=True)
