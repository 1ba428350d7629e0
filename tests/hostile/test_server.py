"""A server that sends anything at all: the client logs, waits and lists again; it never ends, never lies."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.test_watch import Bench, frame, node, page

from muster.assembly.config import Config
from muster.assembly.profiles import build
from muster.base.errors import Expired, ObjectInvalid
from muster.dialects.native import event_of
from muster.framework.ports import Synced, TimeReached
from muster.testing.builders import make_node, make_pod

NESTED = b'{"type":"ADDED","object":' + b"[" * 100_000 + b"}"
GARBAGE = [
    pytest.param(b"\xff\xfe", id="no-text"),
    pytest.param(b"null", id="null"),
    pytest.param(b"[" * 100_000, id="nested-list"),
    pytest.param(NESTED, id="nested-object"),
    pytest.param(b'{"type":"ADDED"}', id="no-object"),
    pytest.param(b'{"type":7,"object":{}}', id="type-is-a-number"),
    pytest.param(frame("DELETED", {}), id="gone-without-metadata"),
    pytest.param(frame("BOOKMARK", {"metadata": []}), id="bookmark-with-a-list"),
    pytest.param(frame("ERROR", {"code": "four"}), id="error-of-a-wrong-type"),
    pytest.param(frame("NEWS", {"metadata": 7}), id="unknown-type"),
    pytest.param(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', id="name-is-no-text"),
    pytest.param(frame("ADDED", {"metadata": {"name": "n", "generation": 2**80}}), id="huge-number"),
]


@pytest.mark.parametrize("line", GARBAGE)
async def test_after_a_line_of_garbage_the_watch_goes_on(line: bytes) -> None:
    bench = Bench([page(1, node("a", 1))], [[line], [frame("ADDED", node("b", 2))]])
    assert await bench.run() == ["+a@1", "synced", "+b@2"]


NO_LISTS = [
    b"{}",
    b'{"items":[]}',
    b'{"kind":"Status","metadata":{},"code":200}',
    b'{"metadata":{},"items":null}',
]


@pytest.mark.parametrize("body", NO_LISTS)
async def test_what_is_no_list_does_not_make_everything_vanish(body: bytes) -> None:
    bench = Bench([page(1, node("a", 1)), body, page(2, node("a", 1))], [Expired("gone", code=410)])
    assert await bench.run() == ["+a@1", "synced"]


async def test_an_object_that_cannot_be_read_any_more_is_as_it_was() -> None:
    odd = {**node("a", 2), "spec": 7}
    bench = Bench([page(1, node("a", 1), node("b", 1)), page(2, odd)], [Expired("gone", code=410)])
    assert await bench.run() == ["+a@1", "+b@1", "synced", "-b"]


@pytest.mark.parametrize("body", [b"\xff", b"null", b"[]", b"[" * 100_000, b'{"items":7}', *NO_LISTS])
async def test_after_a_list_of_garbage_it_is_listed_again(body: bytes) -> None:
    bench = Bench([body, page(1, node("a", 1))], [])
    assert await bench.run() == ["+a@1", "synced"]


fixed, some, maps = st.fixed_dictionaries, st.lists, st.dictionaries
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: some(inner, max_size=3) | maps(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    lines=some(st.binary(max_size=40) | anything.map(lambda value: json.dumps(value).encode()), max_size=4)
)
@settings(max_examples=100)
async def test_whatever_lines_come_what_is_sound_is_told(lines: list[bytes]) -> None:
    watches = [[line.replace(b"\n", b"")] for line in lines]
    bench = Bench([page(1, node("a", 1)) for _ in range(9)], [*watches, [frame("ADDED", node("b", 2))]])
    events = await bench.run()
    assert {"+a@1", "+b@2"} <= set(events)


# ── objects that are as their types say, and absurd ──────────────────────────────────────────────

numbers = st.sampled_from([0, -1, 2**31 - 1, -(2**31), 2**31, 2**63, 10**40])
amounts = (
    st.sampled_from(["1", "0", "-1", "1e99", "9223372036854775807", "x", "", "1Ei", "1.5", "\x1b[2J"])
    | numbers
)
texts = st.sampled_from(
    ["", "a", "../../etc", "\x1b[31m", "a/b", "x" * 300, "\u202e", "rack", "r1", "9" * 5000]
)
labels = maps(texts, texts, max_size=3)
expressions = some(
    fixed(
        {
            "key": texts,
            "operator": st.sampled_from(["In", "Gt", "Exists", "Nonsense"]),
            "values": some(texts),
        }
    ),
    max_size=2,
)
term = fixed(
    {
        "topologyKey": texts,
        "labelSelector": fixed({"matchLabels": labels, "matchExpressions": expressions}),
    }
)
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
weighted = fixed({"weight": numbers, "podAffinityTerm": term})
pod_rule = fixed({}, optional={REQUIRED: some(term, max_size=2), PREFERRED: some(weighted, max_size=2)})
spread = fixed(
    {"maxSkew": numbers, "topologyKey": texts, "whenUnsatisfiable": texts | st.just("DoNotSchedule")},
    optional={"minDomains": numbers, "labelSelector": fixed({"matchLabels": labels})},
)
port = fixed({"containerPort": numbers}, optional={"hostPort": numbers, "hostIP": texts, "protocol": texts})
container = fixed(
    {"name": texts},
    optional={
        "ports": some(port, max_size=2),
        "resources": fixed({"requests": maps(texts | st.just("cpu"), amounts, max_size=3)}),
    },
)
spec = fixed(
    {"schedulerName": st.just("muster"), "containers": some(container, max_size=2)},
    optional={
        "priority": numbers,
        "nodeSelector": labels,
        "overhead": maps(texts, amounts, max_size=2),
        "topologySpreadConstraints": some(spread, max_size=2),
        "affinity": fixed({}, optional={"podAffinity": pod_rule, "podAntiAffinity": pod_rule}),
        "schedulingGroup": fixed({"podGroupName": texts | st.just("g")}),
        "tolerations": some(fixed({"key": texts, "operator": texts, "value": texts}), max_size=2),
        "nodeName": st.just("n1"),
    },
)
metadata = fixed(
    {"name": texts, "namespace": st.just("default"), "uid": texts},
    optional={
        "labels": labels,
        "annotations": labels,
        "creationTimestamp": texts,
        "resourceVersion": texts,
        "deletionTimestamp": texts,
    },
)
hostile_pods = fixed({"metadata": metadata, "spec": spec})
hostile_nodes = fixed(
    {
        "metadata": metadata,
        "spec": st.just({}),
        "status": fixed({"allocatable": maps(texts | st.just("cpu"), amounts)}),
    }
)
hostile_groups = fixed(
    {
        "metadata": metadata,
        "spec": fixed(
            {"schedulingPolicy": fixed({}, optional={"gang": fixed({"minCount": numbers})})},
            optional={
                "priority": numbers,
                "schedulingConstraints": fixed({"topology": some(fixed({"key": texts}), max_size=2)}),
                "parentCompositePodGroupName": texts,
            },
        ),
    }
)
objects = st.one_of(
    st.tuples(st.just("pods"), hostile_pods),
    st.tuples(st.just("nodes"), hostile_nodes),
    st.tuples(st.just("podgroups"), hostile_groups),
    st.tuples(st.just("compositepodgroups"), hostile_groups),
)


@given(found=some(objects, min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_the_scheduler_survives_whatever_its_server_calls_an_object(
    found: list[tuple[str, dict[str, Any]]],
) -> None:
    scheduler = build(Config(scheduler_names=("muster",)), third_party={})
    for resource, raw in (
        ("nodes", as_json(make_node("n1", cpu=4))),
        ("pods", as_json(make_pod("sound", cpu=1))),
        *found,
    ):
        try:
            event = event_of(resource, json.dumps(raw))
        except ObjectInvalid:
            continue
        scheduler.handle(event, 1_000.0)
    scheduler.handle(Synced(), 1_001.0)
    for second in range(2, 20, 3):
        scheduler.handle(TimeReached(), 1_000.0 + second)
    scheduler.report()


def as_json(thing: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(thing)
    return plain


def test_a_number_beyond_the_apis_own_is_no_object() -> None:
    with pytest.raises(ObjectInvalid, match="priority"):
        event_of("pods", json.dumps({"metadata": {"name": "p"}, "spec": {"priority": 2**31}}))
