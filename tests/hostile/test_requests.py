"""Requests that make no sense, to the embedded server: a refusal with a reason, never a fault."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.apiserver.small_server import JSON_PATCH, MERGE_PATCH, PODS, STRATEGIC_PATCH

from muster.apiserver.exchange import Request
from muster.apiserver.server import ApiServer

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "nonsense"]),
            "path": st.sampled_from(["", "/", "/metadata/labels", "/data/~2", "/spec/0", "/-", "a"]),
        },
        optional={"value": anything, "from": st.sampled_from(["/metadata", "/data/a", "x"])},
    ),
    max_size=4,
)
directives = st.fixed_dictionaries(
    {},
    optional={"$patch": st.text(max_size=8), "$retainKeys": anything, "metadata": anything, "data": anything},
)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def ask(
    method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
) -> int:
    """The code of an answer of a server with one pod.  Raises what would be a fault of ours."""
    server = ApiServer(np.random.default_rng(1), now_s=1_000.0)
    headers = {"content-type": "application/json"}
    assert server.handle(Request("POST", PODS, (), headers, json.dumps(POD).encode()), 1_000.0).status == 201
    raw = json.dumps(body).encode() if body is not None else b""
    asked = Request(method, path, tuple(query.items()), {"content-type": content_type}, raw)
    return server.handle(asked, 1_001.0).status


@given(body=operations | anything)
@settings(max_examples=60, deadline=None)
def test_a_json_patch_of_anything_is_answered(body: Any) -> None:
    assert ask("PATCH", f"{PODS}/a", body, JSON_PATCH) < 500


@given(body=directives | anything, kind=st.sampled_from([MERGE_PATCH, STRATEGIC_PATCH]))
@settings(max_examples=60, deadline=None)
def test_a_merge_patch_of_anything_is_answered(body: Any, kind: str) -> None:
    code = ask("PATCH", f"{PODS}/a", body, kind)
    assert code < 500 or (code == 500 and kind == STRATEGIC_PATCH)  # stock's code for a directive it lacks


@given(selector=st.text(max_size=20), field=st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_selectors_of_anything_are_answered(selector: str, field: str) -> None:
    assert ask("GET", PODS, labelSelector=selector) in (200, 400)
    assert ask("GET", PODS, fieldSelector=field) in (200, 400)


@given(amount=st.text(max_size=12) | st.integers() | st.sampled_from(["1e999999999", "-0", "1.", "9" * 400]))
@settings(max_examples=60, deadline=None)
def test_quantities_of_anything_are_answered(amount: Any) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": amount}}}
    pod = {**POD, "metadata": {"name": "b"}, "spec": {"containers": [container]}}
    assert ask("POST", PODS, pod) in (201, 400, 422)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/../b", "\x1b[2J", "a\nb", "..", ".", "%2e%2e", "\u202e", "a\0b"]
)
def test_a_name_that_tries_something_is_no_name(name: str) -> None:
    assert ask("POST", PODS, {**POD, "metadata": {"name": name}}) == 422
    assert ask("GET", f"{PODS}/{name}") in (400, 404, 405)


def test_objects_nested_without_end_are_refused() -> None:
    server = ApiServer(np.random.default_rng(1), now_s=1_000.0)
    for body in (b"[" * 100_000, b'{"a":' * 100_000, b'{"metadata":{"labels":' * 50_000):
        request = Request("POST", PODS, (), {"content-type": "application/json"}, body)
        assert server.handle(request, 1_000.0).status == 400
