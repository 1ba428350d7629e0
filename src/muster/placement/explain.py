"""Masks and amounts → sentences for the person whose job is pending.

In come counts of reasons (`feasibility.py`) and what members ask for; out go one line per pod
("0/12 nodes are available: …") and, for a group, the facts: what it needs, what is free, what would help.
Axes: N nodes, R resources.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from muster.api.core import Pod
from muster.api.quantity import format_amount
from muster.base.arrays import Bool, Int64
from muster.cluster.axes import PODS
from muster.cluster.requests import host_ports, pod_requests
from muster.cluster.snapshot import Snapshot
from muster.placement.capacity import UNLIMITED
from muster.placement.relief import (
    Ask,
    RunningGroup,
    count_placeable,
    find_fewest_endings,
    find_fewest_nodes,
)

_NAMES_MAX = 5
_HOSTNAME = "kubernetes.io/hostname"


class Shortage(Struct, frozen=True):
    """A resource of which there is too little: asked per member; free on usable nodes, in sum and on one.

    Units    base units of the resource.
    """

    resource: str
    each: int
    free: int
    free_on_one: int


class GangFacts(Struct, frozen=True):
    """Why a group does not fit and what would help.

    `needed` members must be placed together, `fitting` could be now; `usable` of `live` nodes pass the rules.
    `asks` says what members ask for ("8 × 1 nvidia.com/gpu").  `endings`: the fewest running groups whose end
    is enough, None if none is, empty if that is not known.  `more_nodes`: how many more nodes like which,
    None if that does not help.  `impossible`: why no node can ever take one member, "" if some can.
    `leaves_out_pods`: members have rules about other pods, or claims, and nothing here reckons with them.
    """

    needed: int
    fitting: int
    live: int
    usable: int
    asks: str
    shortages: tuple[Shortage, ...] = ()
    endings: tuple[str, ...] | None = None
    more_nodes: tuple[int, str] | None = None
    impossible: str = ""
    leaves_out_pods: bool = False

    def sentence(self) -> str:
        """All of it in one line: "needs 8 × 1 nvidia.com/gpu, 4 free; would fit when default/job-a ends"."""
        parts = (self._need(), self.impossible or self._relief(), self._caveat())
        return "; ".join(part for part in parts if part)

    def _caveat(self) -> str:
        """Amounts too large for the empty cluster are so whatever the rules are."""
        is_open = self.leaves_out_pods and not self.impossible
        return "rules about other pods, and claims, are not reckoned with in this" if is_open else ""

    def _need(self) -> str:
        if self.impossible:
            return f"needs {self.asks}"
        several = len(self.shortages) > 1
        have = [_free_text(shortage, self.needed, named=several) for shortage in self.shortages]
        if not (len(have) == 1 and self.shortages[0].free // self.shortages[0].each == self.fitting):
            have.append(f"room for {self.fitting}")
        where = (
            f" on the {self.usable} of {self.live} nodes that pass its rules"
            if self.usable < self.live
            else ""
        )
        return f"needs {self.asks}, {', '.join(have)}{where}"

    def _relief(self) -> str:
        if self.fitting >= self.needed:
            return ""
        ways = []
        if self.endings:
            ways.append(f"when {_names(self.endings)} {'ends' if len(self.endings) == 1 else 'end'}")
        if self.more_nodes is not None:
            count, name = self.more_nodes
            ways.append(f"with {count} more {'node' if count == 1 else 'nodes'} like {name}")
        if ways:
            return f"would fit {', or '.join(ways)}"
        return "would not fit even if everything running ended" if self.endings is None else ""


def summarize_nodes(node_count: int, counts: Mapping[str, int]) -> str:
    """One line on why no node takes a pod, as stock words it: "0/3 nodes are available: 3 Insufficient cpu.".

    Reasons are in order of their text with its count, as in stock, so that equal answers read equally.
    """
    if node_count == 0:
        return "0/0 nodes are available: the cluster has no nodes."
    reasons = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    return (
        f"0/{node_count} nodes are available: {reasons}."
        if reasons
        else f"0/{node_count} nodes are available."
    )


def make_ask(pod: Pod, count: int, usable: Bool, snapshot: Snapshot, *, is_apart: bool = False) -> Ask:
    """What `count` members like this pod ask for; `is_apart`: no two of them on one node.

    `usable` [N]: live rows that pass every filter whose answer does not depend on what is placed.  Rows where
    a wanted host port is taken are left out too: whose end would free them is not looked into.
    """
    ports = host_ports(pod)
    open_rows = usable & snapshot.live
    if ports:
        for row in snapshot.rows_with_host_ports():
            taken = {(port.protocol, port.port) for port in snapshot.host_ports_on(row)}
            open_rows[row] &= not any((port.protocol, port.port) in taken for port in ports)
    most = 0 if snapshot.unknown_resources(pod) else 1 if ports or is_apart else UNLIMITED
    return Ask(
        request=snapshot.request_of(pod),
        member_count=count,
        usable=open_rows,
        per_node_max=most,
        can_grow=not _names_its_node(pod),
    )


def explain_gang(
    snapshot: Snapshot,
    members: Sequence[tuple[Pod, int, Bool]],
    needed: int,
    running: Iterable[RunningGroup] = (),
    *,
    apart: Sequence[bool] = (),
) -> GangFacts:
    """Say why `needed` of the members do not fit together now, and what would change that.

    `members` are the shapes that still want a place, in order: a pod of the shape, how many, and `usable` [N]
    as for `make_ask`.  `running`: everyone whose end would free something.  `apart`: of which shapes no two
    share a node; of none unless given.
    """
    asks = [
        make_ask(pod, count, usable, snapshot, is_apart=is_apart)
        for (pod, count, usable), is_apart in zip(members, apart or [False] * len(members), strict=True)
    ]
    free = snapshot.free
    fitting = count_placeable(free, asks)
    usable = np.any([ask.usable for ask in asks], axis=0) if asks else np.zeros_like(snapshot.live)
    shortages = _shortages(snapshot, asks, needed) if fitting < needed else ()
    impossible = _find_impossible(snapshot, members, asks, needed)
    endings = more_nodes = None
    if fitting < needed and not impossible:
        endings = find_fewest_endings(free, asks, needed, tuple(running))
        grown = find_fewest_nodes(free, snapshot.allocatable, snapshot.live, asks, needed)
        more_nodes = (grown[0], snapshot.node_names[grown[1]]) if grown is not None else None
    return GangFacts(
        needed=needed,
        fitting=fitting,
        live=int(snapshot.live.sum()),
        usable=int(usable.sum()),
        asks=_asks_text(members, [shortage.resource for shortage in shortages], needed),
        shortages=shortages,
        endings=endings,
        more_nodes=more_nodes,
        impossible=impossible,
    )


def _shortages(snapshot: Snapshot, asks: Sequence[Ask], needed: int) -> tuple[Shortage, ...]:
    """Resources that alone are reason enough; for members of several shapes that cannot be said simply."""
    if len(asks) != 1 or asks[0].per_node_max == 0 or not asks[0].usable.any():
        return ()
    ask = asks[0]
    free = np.maximum(snapshot.free_at(np.flatnonzero(ask.usable).astype(np.int32)), 0)
    found = []
    for column in np.flatnonzero(ask.request).tolist():
        each, here = int(ask.request[column]), free[:, column]
        if int(np.minimum(here // each, needed).sum()) < needed:
            in_sum = sum(here.tolist())  # Python integers: a sum over nodes may leave int64
            found.append(Shortage(snapshot.axis.names[column], each, in_sum, int(here.max(initial=0))))
    return tuple(found)


def _find_impossible(
    snapshot: Snapshot, members: Sequence[tuple[Pod, int, Bool]], asks: Sequence[Ask], needed: int
) -> str:
    """Why too few members could be placed even if every node were empty, "" if enough could."""
    possible, reasons = 0, []
    for (pod, count, _), ask in zip(members, asks, strict=True):
        reason = _why_never(snapshot, pod, ask)
        if reason:
            reasons.append(reason)
        else:
            possible += count
    return reasons[0] if possible < needed and reasons else ""


def _why_never(snapshot: Snapshot, pod: Pod, ask: Ask) -> str:
    if not snapshot.live.any():
        return "the cluster has no nodes"
    unknown = snapshot.unknown_resources(pod)
    if unknown:
        return f"no node offers {_names(unknown)}"
    if not ask.usable.any():
        return "no node passes the rules of its members"
    rows = np.flatnonzero(ask.usable)
    lacking: Int64 = np.maximum(ask.request - snapshot.allocatable[rows], 0)
    if not lacking.any(axis=1).all():
        return ""
    names = snapshot.axis.names
    for column in np.flatnonzero(ask.request).tolist():
        largest = int(snapshot.allocatable[rows, column].max())
        if largest < ask.request[column]:
            asked = _amount(names[column], int(ask.request[column]))
            has = format_amount(names[column], largest)
            return f"no node is large enough for one member: asks {asked}, largest node has {has}"
    nearest = int(np.argmin((lacking > 0).sum(axis=1)))
    short = " and ".join(
        _amount(names[column], int(lacking[nearest, column])) for column in np.flatnonzero(lacking[nearest])
    )
    node = snapshot.node_names[rows[nearest]]
    return f"no node is large enough for one member: {node} comes nearest, short of {short}"


def _asks_text(members: Sequence[tuple[Pod, int, Bool]], short: Sequence[str], needed: int) -> str:
    """What members ask for: of one shape what is short of it (all of it if nothing is), else each shape."""
    if len(members) == 1:
        return _times(needed, members[0][0], short)
    total = sum(count for _, count, _ in members)
    many = f"{needed} members" if needed == total else f"{needed} of {total} members"
    alike: dict[tuple[tuple[str, int], ...], tuple[int, Pod]] = {}  # claims may be all that tells them apart
    for pod, count, _ in members:
        asked = tuple(sorted(pod_requests(pod).items()))
        alike[asked] = (alike.get(asked, (0, pod))[0] + count, pod)
    shapes = [_times(count, pod, ()) for count, pod in alike.values()]
    return f"{many} ({_names(shapes)})" if shapes else many


def _times(count: int, pod: Pod, only: Sequence[str]) -> str:
    """What so many pods like this ask for; slots are said where they are short, or all there is to say."""
    asked = {name: amount for name, amount in sorted(pod_requests(pod).items()) if amount and name != PODS}
    chosen = asked if not only else {name: amount for name, amount in asked.items() if name in only}
    each = " + ".join(_amount(name, amount) for name, amount in chosen.items())
    parts = [f"{count} × {each}"] if each else []
    if PODS in only or not each:
        parts.append(_amount(PODS, count))
    return " and ".join(parts)


def _free_text(shortage: Shortage, needed: int, *, named: bool) -> str:
    free = (_amount if named else format_amount)(shortage.resource, shortage.free)
    if shortage.free // shortage.each >= needed:
        return f"{free} free but at most {format_amount(shortage.resource, shortage.free_on_one)} on one node"
    return f"{free} free"


def _amount(resource: str, amount: int) -> str:
    if resource == PODS:
        return "1 pod slot" if amount == 1 else f"{amount} pod slots"
    return f"{format_amount(resource, amount)} {resource}"


def _names(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"; beyond a handful the first and how many more."""
    shown = list(names[:_NAMES_MAX])
    if len(names) > _NAMES_MAX:
        shown.append(f"{len(names) - _NAMES_MAX} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _names_its_node(pod: Pod) -> bool:
    """Whether only nodes that exist can meet the pod's rules: it names them."""
    spec = pod.spec
    if spec.node_name or _HOSTNAME in (spec.node_selector or {}):
        return True
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return False
    return all(
        any(r.operator == "In" for r in term.match_fields or ())
        or any(r.key == _HOSTNAME and r.operator == "In" for r in term.match_expressions or ())
        for term in affinity.required.node_selector_terms or ()
    )
