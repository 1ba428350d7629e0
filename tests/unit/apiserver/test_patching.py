"""JSON patches and merge patches."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.apiserver.small_server import (
    JSON_PATCH,
    MAPS,
    MERGE_PATCH,
    PODS,
    STRATEGIC_PATCH,
    SmallServer,
)

from muster.apiserver.patching import copied, merge_patch

REJECTED = (422, "the server rejected our request due to an error in our request")


@pytest.fixture
def server() -> SmallServer:
    server = SmallServer()
    server.create_map("a", {"k": "v", "l": "w"}, labels={"x/y": "1"})
    server.create_pod("p", {"tolerations": [{"key": "a"}, {"key": "b"}]})
    return server


def test_a_json_patch_does_its_operations_in_turn(server: SmallServer) -> None:
    operations = [
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/data/m", "value": "x"},
        {"op": "copy", "from": "/data/m", "path": "/data/n"},
        {"op": "move", "from": "/data/l", "path": "/data/o"},
        {"op": "replace", "path": "/data/k", "value": "z"},
        {"op": "remove", "path": "/metadata/labels/x~1y"},
    ]
    obj = server.object("PATCH", f"{MAPS}/a", operations, content=JSON_PATCH)
    assert obj["data"] == {"k": "z", "m": "x", "n": "x", "o": "w"}
    assert "labels" not in obj["metadata"]


def test_a_json_patch_reaches_into_lists(server: SmallServer) -> None:
    operations = [
        {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "c"}},
        {"op": "add", "path": "/spec/tolerations/1", "value": {"key": "z"}},
        {"op": "remove", "path": "/spec/tolerations/0"},
    ]
    obj = server.object("PATCH", f"{PODS}/p", operations, content=JSON_PATCH)
    assert [item["key"] for item in obj["spec"]["tolerations"]] == ["z", "b", "c"]


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/data/k", "value": "x"}, id="a test that fails"),
        pytest.param({"op": "remove", "path": "/data/nope"}, id="nothing to remove"),
        pytest.param({"op": "replace", "path": "/nope/x", "value": "x"}, id="nowhere to replace"),
        pytest.param({"op": "add", "path": "/nope/a", "value": "x"}, id="no place"),
        pytest.param({"op": "frob", "path": "/data/k"}, id="no such operation"),
        pytest.param({"op": "add", "value": "x"}, id="no path"),
        pytest.param({"op": "add", "path": "", "value": 5}, id="no object any more"),
        pytest.param({"op": "copy", "from": "data", "path": "/data/k"}, id="no pointer"),
    ],
)
def test_an_operation_that_cannot_be_done_is_rejected_whole(
    server: SmallServer, operation: dict[str, Any]
) -> None:
    patch = [{"op": "add", "path": "/data/k", "value": "changed"}, operation]
    assert server.refusal("PATCH", f"{MAPS}/a", patch, content=JSON_PATCH) == REJECTED
    assert server.object("GET", f"{MAPS}/a")["data"]["k"] == "v"


@pytest.mark.parametrize(
    ("content", "body", "why"),
    [
        pytest.param(JSON_PATCH, b"{}", "[]handlers.jsonPatchOp", id="json patch that is an object"),
        pytest.param(JSON_PATCH, b"[5]", "type handlers.jsonPatchOp", id="operation that is none"),
        pytest.param(MERGE_PATCH, b"[]", "map[string]interface {}", id="merge patch that is a list"),
        pytest.param(STRATEGIC_PATCH, b"[]", "map[string]interface {}", id="strategic patch that is a list"),
        pytest.param(MERGE_PATCH, b"{nope", "invalid JSON patch", id="no JSON"),
    ],
)
def test_a_patch_of_the_wrong_shape_is_400(server: SmallServer, content: str, body: bytes, why: str) -> None:
    code, message = server.refusal("PATCH", f"{MAPS}/a", body, content=content)
    assert code == 400
    assert message.endswith(why)


def test_too_many_operations_are_413(server: SmallServer) -> None:
    patch = [{"op": "test", "path": "/data/k", "value": "v"}] * 10_001
    assert server.refusal("PATCH", f"{MAPS}/a", patch, content=JSON_PATCH)[0] == 413


def test_a_type_that_is_no_patch_is_415(server: SmallServer) -> None:
    assert server.refusal("PATCH", f"{MAPS}/a", {})[0] == 415
    assert server.refusal("PATCH", f"{MAPS}/a", b"{}", content="application/apply-patch+yaml")[0] == 415


def test_a_patch_that_makes_nonsense_is_422(server: SmallServer) -> None:
    patch = {"data": {"k": 5}}
    code, message = server.refusal("PATCH", f"{MAPS}/a", patch, content=MERGE_PATCH)
    assert code == 422
    assert message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert message.endswith(
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    )


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        pytest.param({"data": {"k": 5}}, '"map[data:map[k:5]]": cannot convert int64 to string', id="number"),
        pytest.param({"data": [1]}, "cannot restore map from slice", id="list for a map"),
        pytest.param({"metadata": 5}, "cannot restore struct from: int64", id="number for an object"),
        pytest.param({"metadata": {"finalizers": "x"}}, "cannot restore slice from string", id="no list"),
    ],
)
def test_a_strategic_patch_that_makes_nonsense_is_told_as_go_tells_it(
    server: SmallServer, patch: dict[str, Any], why: str
) -> None:
    code, message = server.refusal("PATCH", f"{MAPS}/a", patch, content=STRATEGIC_PATCH)
    assert code == 422
    assert message.endswith(why)


def test_a_patch_cannot_make_another_kind(server: SmallServer) -> None:
    message = server.refusal("PATCH", f"{MAPS}/a", {"kind": "Pod"}, content=MERGE_PATCH)[1]
    assert message.endswith("converting (v1.Pod) to (core.ConfigMap): unknown conversion")
    message = server.refusal("PATCH", f"{MAPS}/a", {"apiVersion": "v2"}, content=MERGE_PATCH)[1]
    assert 'no kind "ConfigMap" is registered for version "v2"' in message


@pytest.mark.parametrize(("value", "found"), [(1, "number"), ({"a": "b"}, "object"), ([None], "array")])
@pytest.mark.parametrize("name", ["apiVersion", "kind"])
def test_a_kind_or_version_that_is_no_text_is_told(
    server: SmallServer, name: str, value: Any, found: str
) -> None:
    code, message = server.refusal("PATCH", f"{MAPS}/a", {name: value}, content=MERGE_PATCH)
    assert code == 422
    assert message.endswith(f"json: cannot unmarshal {found} into Go struct field .{name} of type string")


def test_fields_given_twice_in_a_patch_are_told(server: SmallServer) -> None:
    body = b'{"data": {"k": "x"}, "data": {"k": "y"}}'
    response = server.ask("PATCH", f"{MAPS}/a", body, content=MERGE_PATCH)
    assert response.headers == (("Warning", '299 - "duplicate field \\"data\\""'),)
    strict = f"{MAPS}/a?fieldValidation=Strict"
    assert server.refusal("PATCH", strict, body, content=MERGE_PATCH)[0] == 422


def test_a_patch_with_an_old_version_is_409(server: SmallServer) -> None:
    patch = {"metadata": {"resourceVersion": "1"}, "data": {"k": "x"}}
    assert server.refusal("PATCH", f"{MAPS}/a", patch, content=MERGE_PATCH)[0] == 409


def test_a_patch_cannot_rename(server: SmallServer) -> None:
    patch = {"metadata": {"name": "b"}}
    assert (
        "does not match the name on the URL"
        in server.refusal("PATCH", f"{MAPS}/a", patch, content=MERGE_PATCH)[1]
    )


def test_a_patch_may_be_dry_and_may_be_strict(server: SmallServer) -> None:
    patch = {"spec": {"foo": 1}}
    assert server.refusal("PATCH", f"{PODS}/p?fieldValidation=Strict", patch, content=MERGE_PATCH)[
        1
    ].endswith('strict decoding error: unknown field "spec.foo"')
    server.object("PATCH", f"{MAPS}/a?dryRun=All", {"data": {"k": "x"}}, content=MERGE_PATCH)
    assert server.object("GET", f"{MAPS}/a")["data"]["k"] == "v"


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, JSON)
def test_a_merge_patch_twice_is_a_merge_patch_once(target: Any, patch: Any) -> None:
    before = copied(target)
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert target == before


def test_what_is_not_there_is_nothing_to_test_copy_and_replace(server: SmallServer) -> None:
    tested = {"op": "test", "path": "/data/none", "value": None}
    copied = {"op": "copy", "from": "/metadata/none", "path": "/metadata/annotations"}
    replaced = {"op": "replace", "path": "/data/new", "value": "x"}
    obj = server.object("PATCH", f"{MAPS}/a", [tested, copied, replaced], content=JSON_PATCH)
    assert "annotations" not in obj["metadata"]
    assert obj["data"]["new"] == "x"
    for operation in (
        {"op": "move", "from": "/metadata/none", "path": "/metadata/annotations"},
        {"op": "test", "path": "/none/none", "value": None},
        {"op": "test", "path": "/data/none", "value": "x"},
    ):
        assert server.refusal("PATCH", f"{MAPS}/a", [operation], content=JSON_PATCH)[0] == 422


def test_copies_that_double_an_object_time_and_again_end_at_three_mebibytes(server: SmallServer) -> None:
    operations = [{"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(40)]
    assert server.refusal("PATCH", f"{MAPS}/a", operations, content=JSON_PATCH) == REJECTED
    few = [{"op": "copy", "from": "/data/k", "path": f"/data/k{number}"} for number in range(40)]
    assert len(server.object("PATCH", f"{MAPS}/a", few, content=JSON_PATCH)["data"]) == 42


def test_copies_that_nest_an_object_ever_deeper_are_refused(server: SmallServer) -> None:
    paths = ["/data" + "/d" * (2**number) for number in range(15)]
    operations = [{"op": "copy", "from": "/data", "path": path} for path in paths]
    assert server.refusal("PATCH", f"{MAPS}/a", operations, content=JSON_PATCH) == REJECTED


@pytest.mark.parametrize("depth", [400, 900, 5000])
@pytest.mark.parametrize("content", [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])
def test_a_patch_nested_however_deep_is_no_fault_of_the_server(
    server: SmallServer, depth: int, content: str
) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    patch = f'{{"spec":{{"containers":[{{"name":"c","x":{nested}}}]}}}}'
    if content == JSON_PATCH:
        patch = f'[{{"op":"add","path":"/spec/nodeSelector","value":{nested}}}]'
    assert server.ask("PATCH", f"{PODS}/p", patch.encode(), content=content).status in (200, 400, 422)
