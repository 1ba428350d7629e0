"""What an `expect` step can ask, one function per word; each yields what is not as wanted.

`CHECKS` is the whole vocabulary.  Comes in: a `Sight`, the objects of the cluster at one moment.
Next: `interpreter.py`, which polls until nothing is yielded.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from tests.conformance.matching import field_at, find_condition, has_part, says
from tests.conformance.names import job_names, spread, spread_all
from tests.conformance.server import COLLECTIONS, EVENTS, GROUPS, NODES, PODS, Api, Object


class Memory(Struct):
    """What a case has learnt so far: first uids of its pods by name, and values put aside."""

    uids: dict[str, str] = {}
    kept: dict[str, Any] = {}


class Sight:
    """The objects of the cluster at one moment, and where to ask for the rest."""

    def __init__(self, api: Api, memory: Memory, *, compare_texts: bool) -> None:
        self.api = api
        self.memory = memory
        self.compare_texts = compare_texts
        self.pods = _by_name(api.items(PODS))
        self.groups = _by_name(api.items(GROUPS))
        self.nodes = _by_name(api.items(NODES))

    def node_of(self, pod: str) -> str | None:
        """Where this pod is bound; None when nowhere or when there is no such pod."""
        return self.pods[pod]["spec"].get("nodeName") if pod in self.pods else None

    def bound_members(self, groups: list[str]) -> list[str]:
        """Names of the bound pods of these groups."""
        return [
            name
            for name, pod in self.pods.items()
            if pod["spec"].get("nodeName")
            and (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") in groups
        ]

    def runs_on(self, name: str) -> bool:
        """Whether this very pod is still there and nobody has asked for its deletion."""
        return self.is_first(name) and not self.pods[name]["metadata"].get("deletionTimestamp")

    def is_first(self, name: str) -> bool:
        """Whether the pod of this name is the one the case made."""
        if name not in self.pods:
            return False
        uid = self.pods[name]["metadata"]["uid"]
        return bool(uid == self.memory.uids.get(name, uid))

    def fetch(self, of: str) -> Object:
        """The object that `group/g` or a whole path names (a Status when there is none)."""
        word, _, name = of.partition("/")
        return self.api.call("GET", of if of.startswith("/") else f"{COLLECTIONS[word]}/{name}").object

    def uid_of(self, name: str) -> str:
        """Uid of the group, pod or composite of this name."""
        thing = self.groups.get(name) or self.pods.get(name) or self.fetch(f"composite/{name}")
        return str(field_at(thing, "metadata.uid"))

    def says(self, wanted: str, found: str | None) -> bool:
        """Whether a message or note says what is wanted."""
        return says(wanted, found or "", compare_texts=self.compare_texts)


Complaints = Iterator[str]


def complaints(sight: Sight, expectation: Object) -> list[str]:
    """All that is not as the expectation wants it."""
    return [
        complaint
        for word, wanted in expectation.items()
        if word not in ("within", "settle")
        for complaint in CHECKS[word](sight, wanted)
    ]


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────


def _bound(sight: Sight, wanted: Any) -> Complaints:
    for name in spread_all(wanted):
        if not sight.node_of(name):
            yield f"{name} should be bound"


def _pending(sight: Sight, wanted: Any) -> Complaints:
    for name in spread_all(wanted):
        if name not in sight.pods:
            yield f"{name} should exist"
        elif node := sight.node_of(name):
            yield f"{name} should have no node, has {node}"


def _gone(sight: Sight, wanted: Any) -> Complaints:
    for name in spread_all(wanted):
        if sight.runs_on(name):
            yield f"{name} should have been evicted or deleted"


def _untouched(sight: Sight, wanted: Any) -> Complaints:
    for name in spread_all(wanted):
        if not sight.runs_on(name):
            yield f"{name} should still run"


def _bound_count(sight: Sight, wanted: Any) -> Complaints:
    for groups, count in wanted.items():
        for group in spread(groups):
            found = len(sight.bound_members([group]))
            if found != count:
                yield f"group {group}: {found} bound, want {count}"


def _gone_count(sight: Sight, wanted: Any) -> Complaints:
    for names, count in wanted.items():
        found = sum(not sight.runs_on(name) for name in spread_all(names))
        if found != count:
            yield f"{names}: {found} gone, want {count}"


def _gone_of(sight: Sight, wanted: Any) -> Complaints:
    gone = [name for name in spread_all(wanted["names"]) if not sight.runs_on(name)]
    if len(gone) != wanted["count"]:
        yield f"{len(gone)} gone ({', '.join(gone)}), want {wanted['count']}"


def _exactly_one_of(sight: Sight, wanted: Any) -> Complaints:
    placed = [[bool(sight.node_of(name)) for name in spread_all(names)] for names in wanted]
    whole = [all(each) for each in placed]
    if sum(whole) != 1 or any(
        any(each) for each, is_whole in zip(placed, whole, strict=True) if not is_whole
    ):
        yield f"want one of {wanted} whole and the others without a node; have {placed}"


def _whole_or_none(sight: Sight, wanted: Any) -> Complaints:
    for names in wanted:
        placed = [bool(sight.node_of(name)) for name in spread_all(names)]
        if len(set(placed)) > 1:
            yield f"want all or none of {names} with a node; have {placed}"


def _nodes(sight: Sight, wanted: Any) -> Complaints:
    for name, nodes in wanted.items():
        if sight.node_of(name) not in ([nodes] if isinstance(nodes, str) else nodes):
            yield f"{name} should be on {nodes}, is on {sight.node_of(name)}"


def _nominated(sight: Sight, wanted: Any) -> Complaints:
    for names, node in wanted.items():
        for name in spread(names):
            found = field_at(sight.pods.get(name), "status.nominatedNodeName") or None
            if (node == "any" and not found) or (node != "any" and found != node):
                yield f"{name}: nominated {found}, want {node}"


def _pod_conditions(sight: Sight, wanted: Any) -> Complaints:
    for names, fields in wanted.items():
        for name in spread(names):
            type_ = (fields or {}).get("type", "PodScheduled")
            yield from _condition(sight, name, sight.pods.get(name), type_, fields)


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


def _group_conditions(sight: Sight, wanted: Any) -> Complaints:
    for name, fields in wanted.items():
        type_ = (fields or {}).get("type", "PodGroupInitiallyScheduled")
        yield from _condition(sight, f"group {name}", sight.groups.get(name), type_, fields)


def _domain(sight: Sight, wanted: Any) -> Complaints:
    for groups, domain in wanted.items():
        nodes = [
            sight.nodes[sight.pods[pod]["spec"]["nodeName"]] for pod in sight.bound_members(groups.split(","))
        ]
        found = {node["metadata"]["labels"].get(domain["key"]) for node in nodes}
        if len(found) != 1 or ("value" in domain and found != {domain["value"]}):
            yield f"group {groups}: domains {sorted(map(str, found))}, want {domain}"


def _distinct_nodes(sight: Sight, wanted: Any) -> Complaints:
    for group in [wanted] if isinstance(wanted, str) else wanted:
        repeated = Counter(sight.node_of(name) for name in sight.bound_members([group]))
        if any(count > 1 for count in repeated.values()):
            yield f"group {group}: nodes repeat {dict(repeated)}"


# ── objects of any kind ──────────────────────────────────────────────────────────────────────────


def _exists(sight: Sight, wanted: Any) -> Complaints:
    for path, there in wanted.items():
        if sight.api.serves(path) != there:
            yield f"{path}: exists is {not there}, want {there}"


def _events(sight: Sight, wanted: Any) -> Complaints:
    found = sight.api.items(EVENTS)
    for event in wanted:
        note = re.sub(r"<uid of (.*?)>", lambda named: sight.uid_of(named[1]), event.get("note", ""))
        seen = any(_same_event(event, each) and sight.says(note, each.get("note")) for each in found)
        if seen and event.get("none"):
            yield f"there is an event like {event}"
        elif not seen and not event.get("none"):
            yield f"no event like {event}; seen {_event_list(found)}"


def _same_event(wanted: Object, found: Object) -> bool:
    places = {
        "reason": "reason",
        "type": "type",
        "action": "action",
        "on": "regarding.name",
        "kind": "regarding.kind",
        "related": "related.name",
    }
    return all(wanted.get(word) in (None, field_at(found, place)) for word, place in places.items())


def _event_list(found: list[Object]) -> list[tuple[str, str, str]]:
    return sorted(
        {(str(e.get("reason")), str(field_at(e, "regarding.name")), str(e.get("note"))[:90]) for e in found}
    )[:8]


def _fields(sight: Sight, wanted: Any) -> Complaints:
    for of, fields in wanted.items():
        thing = sight.fetch(of)
        for dotted, value in fields.items():
            if dotted.endswith(".message") and not sight.compare_texts:
                continue
            found = field_at(thing, dotted)
            if isinstance(value, str) and value[:1] in ("$", "!") and value[1:] in sight.memory.kept:
                remembered = sight.memory.kept[value[1:]]
                if (found == remembered) != (value[0] == "$"):
                    yield f"{of} {dotted}: is {found!r}, remembered {remembered!r}"
            elif found != value and not (value == "any" and found):
                yield f"{of} {dotted}: is {found!r}, want {value!r}"


def _objects(sight: Sight, wanted: Any) -> Complaints:
    for each in wanted:
        each = _with_job_names(sight, each) if "job" in each else each
        path = COLLECTIONS.get(each["of"]) or str(each["of"])
        named = [
            o for o in sight.api.items(path) if re.fullmatch(each.get("name", ".*"), o["metadata"]["name"])
        ]
        count = sum(has_part(each.get("like", {}), found) for found in named)
        if count != each.get("count", 1):
            asked = json.dumps({key: each[key] for key in ("name", "like") if key in each})
            seen = sorted(found["metadata"]["name"] for found in named)[:6]
            want = each.get("count", 1)
            yield f"{count} of {len(named)} {each['of']} are like {asked}, want {want}; seen {seen}"


def _with_job_names(sight: Sight, wanted: Object) -> Object:
    uid = str(field_at(sight.fetch(f"job/{wanted['job']}"), "metadata.uid"))
    names = job_names(wanted["job"], uid, workload=wanted.get("workload"), template=wanted.get("template"))
    text = json.dumps(wanted).replace("$WORKLOAD", names.workload).replace("$GROUP", names.group)
    filled: Object = json.loads(text)
    return filled


def _any_of(sight: Sight, wanted: Any) -> Complaints:
    each_one = [complaints(sight, expectation) for expectation in wanted]
    if all(each_one):
        yield "none of: " + " | ".join("; ".join(one) for one in each_one)


def _condition(
    sight: Sight, what: str, thing: Object | None, type_: str, wanted: Object | None
) -> Complaints:
    """A condition: not there (None), or these of its fields; `type` has been used up by the caller."""
    found = find_condition(thing, type_)
    if wanted is None:
        if found:
            yield f"{what}: no condition wanted, have {found}"
        return
    if found is None:
        yield f"{what}: no condition {type_}"
        return
    for key, value in wanted.items():
        if key == "message":
            fits = sight.says(value, found.get("message"))
        else:
            fits = key == "type" or found.get(key) == value
        if not fits:
            yield f"{what}: {key} is {found.get(key)!r}, want {value!r}"


def _by_name(found: list[Object]) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in found}


CHECKS: dict[str, Callable[[Sight, Any], Complaints]] = {
    "bound": _bound,
    "pending": _pending,
    "gone": _gone,
    "untouched": _untouched,
    "boundCount": _bound_count,
    "goneCount": _gone_count,
    "goneOf": _gone_of,
    "exactlyOneOf": _exactly_one_of,
    "wholeOrNone": _whole_or_none,
    "nodes": _nodes,
    "nominated": _nominated,
    "pod": _pod_conditions,
    "group": _group_conditions,
    "domain": _domain,
    "distinctNodes": _distinct_nodes,
    "exists": _exists,
    "events": _events,
    "fields": _fields,
    "objects": _objects,
    "anyOf": _any_of,
}
