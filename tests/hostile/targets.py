"""What is fed with bytes: readers of what users and servers write, each with bytes to begin with.

A target raises what would be a fault of ours, and nothing where the bytes are refused in words.  Next:
`fuzzing.py`, which feeds them; `test_targets.py`, which plays what was found once.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from tests.unit.apiserver.small_server import JSON_PATCH, MERGE_PATCH, PODS, STRATEGIC_PATCH

from muster.api.devices import Device
from muster.api.quantity import QuantityError, parse_quantity
from muster.api.versions import VersionError, parse_version
from muster.apiserver.bodies import JSON, PROTOBUF, YAML
from muster.apiserver.exchange import Request, Response
from muster.apiserver.expressions.compiling import compile_fault
from muster.apiserver.server import ApiServer
from muster.placement.device_selectors import Selector, SelectorError

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
APPLY_PATCH = "application/apply-patch+yaml"
PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
ENVELOPE = b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12"
# What stock answers with this code.
STOCKS_500 = ("resourceVersion", "strconv.ParseUint", "invalid syntax")
REQUESTS_MAX = 2_000  # to one server: what they make must not pile up
DEVICE = {
    "name": "d",
    "attributes": {"model": {"string": "x"}, "version": {"version": "1.2.3"}},
    "capacity": {"memory": {"value": "1Gi"}},
}


class Target(NamedTuple):
    """What is fed, and with what to begin."""

    feed: Callable[[bytes], None]
    begin: tuple[bytes, ...]


class _Server:
    """A server with one pod, made anew from time to time."""

    def __init__(self) -> None:
        self._asked = REQUESTS_MAX
        self._server: ApiServer | None = None

    def ask(
        self, method: str, path: str, content_type: str, body: bytes, query: tuple[tuple[str, str], ...] = ()
    ) -> Response:
        self._asked += 1
        if self._server is None or self._asked > REQUESTS_MAX:
            self._server, self._asked = ApiServer(np.random.default_rng(1), now_s=1_000.0), 0
            self._ask("POST", PODS, JSON, json.dumps(POD).encode())
        return self._ask(method, path, content_type, body, query)

    def _ask(
        self, method: str, path: str, content_type: str, body: bytes, query: tuple[tuple[str, str], ...] = ()
    ) -> Response:
        assert self._server is not None
        headers = {"content-type": content_type}
        return self._server.handle(Request(method, path, query, headers, body), 1_000.0)


_SERVER = _Server()


def _check(answer: Response) -> None:
    message = str((answer.object or {}).get("message"))
    if answer.status >= 500 and not any(text in message for text in STOCKS_500):
        raise AssertionError(f"{answer.status}: {message}")


def feed_protobuf(data: bytes) -> None:
    """A pod in protobuf."""
    _check(_SERVER.ask("POST", PODS, PROTOBUF, ENVELOPE + data))


def feed_review(data: bytes) -> None:
    """A protobuf message of any kind, as kubectl asks what it may do."""
    _check(_SERVER.ask("POST", REVIEWS, PROTOBUF, b"k8s\0" + data))


def feed_json(data: bytes) -> None:
    """A pod in JSON."""
    _check(_SERVER.ask("POST", PODS, JSON, data))


def feed_yaml(data: bytes) -> None:
    """A pod in YAML."""
    _check(_SERVER.ask("POST", PODS, YAML, data))


def feed_patch(data: bytes) -> None:
    """A patch of the kind that the first byte says."""
    kind = PATCHES[data[0] % len(PATCHES)] if data else PATCHES[0]
    query = (("fieldManager", "m"),) if kind == APPLY_PATCH else ()
    answer = _SERVER.ask("PATCH", f"{PODS}/a", kind, data[1:], query)
    if kind != STRATEGIC_PATCH:  # of which stock answers every fault of a directive with 500
        _check(answer)


def feed_path(data: bytes) -> None:
    """Any path and query, with some verb."""
    path, _, query = data.decode("utf-8", "replace").partition("?")
    verb = ("GET", "PUT", "DELETE", "POST", "PATCH")[len(data) % 5]
    pairs = [part.partition("=") for part in query.split("&")] if query else []
    asked = tuple((name, value) for name, _, value in pairs)
    _check(_SERVER.ask(verb, f"/{path}", JSON, b"{}", asked))


def feed_selectors(data: bytes) -> None:
    """A selector of labels, and of fields."""
    text = data.decode("utf-8", "replace")
    _check(_SERVER.ask("GET", PODS, "", b"", (("labelSelector", text),)))
    _check(_SERVER.ask("GET", PODS, "", b"", (("fieldSelector", text),)))


def feed_quantity(data: bytes) -> None:
    """A quantity."""
    try:
        parse_quantity(data.decode("utf-8", "replace"))
    except QuantityError:
        return


def feed_version(data: bytes) -> None:
    """A semantic version."""
    try:
        parse_version(data.decode("utf-8", "replace"))
    except VersionError:
        return


def feed_cel(data: bytes) -> None:
    """A selector of devices, at its creation and on a device."""
    expression = data.decode("utf-8", "replace")
    compile_fault(expression[:_EXPRESSION_MAX])
    try:
        Selector(expression).meets("drv.example.com", msgspec.convert(DEVICE, Device))
    except SelectorError:
        return


_EXPRESSION_MAX = 10 * 1024
_ATTRIBUTES, _CAPACITY = "device.attributes['drv.example.com']", "device.capacity['drv.example.com']"
TARGETS = {
    "protobuf": Target(feed_protobuf, (b"",)),
    "review": Target(feed_review, (b"",)),
    "json": Target(feed_json, (json.dumps(POD).encode(),)),
    "yaml": Target(
        feed_yaml, (b"kind: Pod\nmetadata: {name: b}\nspec: {containers: [{name: c, image: &i x}]}\n",)
    ),
    "patch": Target(
        feed_patch,
        (
            b'\0[{"op":"replace","path":"/metadata/labels/x","value":"z"}]',
            b'\1{"metadata":{"labels":{"a":null}}}',
            b'\2{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"name":"c","$patch":"delete"}]}}',
            b"\3apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {q: r}}\n",
        ),
    ),
    "path": Target(
        feed_path,
        (
            b"api/v1/pods?limit=1&continue=abc&labelSelector=a",
            b"apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups?resourceVersion=1",
        ),
    ),
    "selectors": Target(feed_selectors, (b"a in (b,c),!d,e!=f,g>1", b"spec.nodeName=x,metadata.name!=y")),
    "quantity": Target(feed_quantity, (b"1.5Gi", b"1e3", b"100m")),
    "version": Target(feed_version, (b"1.2.3-rc.1+b",)),
    "cel": Target(
        feed_cel,
        (
            f"{_ATTRIBUTES}.model == 'x'".encode(),
            f"{_CAPACITY}.memory.compareTo(quantity('1Gi')) >= 0".encode(),
            f"{_ATTRIBUTES}.version.isLessThan(semver('2.0.0'))".encode(),
            f"cel.bind(a, {_ATTRIBUTES}, a.model.startsWith('x'))".encode(),
            b"[1, ?optional.of(2)].map(x, {x: 'a'}).all(y, y[?1].orValue('b') == r'\\d')",
        ),
    ),
}
