"""Tests of assembly/node_manifests.py: what becomes of a shape or a file, and how its mistakes are named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.assembly.node_manifests import nodes_from_shape, nodes_from_text
from muster.base.errors import ConfigError
from muster.controllers.device_driver import DEVICES


def node_text(extra: str = "", name: str = "n1") -> str:
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n{extra}"


def test_nodes_of_a_shape_are_numbered_from_one() -> None:
    nodes = nodes_from_shape(2, "cpu=8,memory=64Gi,nvidia.com/gpu=1")
    assert [node["metadata"]["name"] for node in nodes] == ["n1", "n2"]
    assert nodes[1]["status"]["allocatable"] == {
        "cpu": "8",
        "memory": "64Gi",
        "nvidia.com/gpu": "1",
        "pods": "110",
    }


def test_a_shape_may_say_how_many_pods() -> None:
    assert nodes_from_shape(1, "cpu=1,pods=3")[0]["status"]["capacity"]["pods"] == "3"


@pytest.mark.parametrize(
    ("shape", "message", "hint"),
    [
        pytest.param("cpu", "--node-shape: 'cpu' is not resource=quantity", "cpu=8", id="no-equals-sign"),
        pytest.param("", "--node-shape: '' is not resource=quantity", "cpu=8", id="empty"),
        pytest.param("cpu=1,cpu=2", "--node-shape: cpu is given twice", "cpu=8", id="twice"),
        pytest.param("cpu=viele", "--node-shape: cpu: not a quantity: 'viele'", "64Gi", id="no-number"),
        pytest.param("cpu=-1", "--node-shape: cpu: not a quantity: '-1'", "64Gi", id="negative"),
        pytest.param("memroy=1Gi", "--node-shape: memroy: no such resource", "'memory'", id="typo"),
        pytest.param("gpu=1", "--node-shape: gpu: no such resource", "nvidia.com/gpu", id="no-domain"),
    ],
)
def test_a_bad_shape_is_named_with_its_cure(shape: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        nodes_from_shape(1, shape)
    assert str(caught.value).startswith(message)
    assert hint in caught.value.hint


@pytest.mark.parametrize("count", [-1, 100_001])
def test_an_absurd_count_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match=f"--nodes: must be between 0 and 100000, got {count}"):
        nodes_from_shape(count, "cpu=1")


def test_several_documents_and_lists_give_nodes_in_order() -> None:
    item = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}
    listed = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [item]})
    nodes = nodes_from_text(node_text(name="a") + "---\n---\n" + listed, "nodes.yaml")
    assert [node["metadata"]["name"] for node in nodes] == ["a", "b"]


def test_capacity_and_allocatable_fill_each_other() -> None:
    node = nodes_from_text(node_text("status: {capacity: {cpu: 4}}"), "nodes.yaml")[0]
    assert node["status"]["allocatable"] == {"cpu": "4", "pods": "110"}
    node = nodes_from_text(node_text("status: {allocatable: {cpu: 4, pods: 9}}"), "nodes.yaml")[0]
    assert node["status"]["capacity"] == {"cpu": "4", "pods": "9"}


def test_devices_go_with_the_node_as_an_annotation() -> None:
    node = nodes_from_text(node_text("devices: [{driver: gpu.example.com, count: 8}]"), "nodes.yaml")[0]
    assert node["metadata"]["annotations"] == {DEVICES: '[{"driver":"gpu.example.com","count":8}]'}
    assert "devices" not in node


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        pytest.param("a: [", "f.yaml: line ", "YAML or JSON", id="broken-yaml"),
        pytest.param("[" * 5000, "f.yaml: ", "YAML or JSON", id="nested-too-deeply"),
        pytest.param("", "f.yaml: no Node in it", "--nodes 0", id="empty"),
        pytest.param("- 1", "f.yaml: document 1: not an object", "kind: Node", id="not-an-object"),
        pytest.param("kind: Pod", "f.yaml: document 1: $.kind: must be Node, got 'Pod'", "kubectl", id="pod"),
        pytest.param(
            node_text() + "---\n" + node_text("status: {alocatable: {}}", "n2"),
            "f.yaml: document 2: $.status: no such field: 'alocatable'",
            "did you mean 'allocatable'?",
            id="typo",
        ),
        pytest.param(
            node_text("status: {allocatable: {cpu: 4x}}"),
            "f.yaml: document 1: $.status.allocatable.cpu: not a quantity: '4x'",
            "500m",
            id="bad-quantity",
        ),
        pytest.param(
            node_text("spec: {taints: [{key: a, effect: NoSchedul}]}"),
            "f.yaml: document 1: $.spec.taints[0].effect: must be one of NoSchedule",
            "",
            id="bad-effect",
        ),
        pytest.param(
            node_text("spec: {taints: {key: a}}"),
            "f.yaml: document 1: $.spec.taints: must be a list",
            "",
            id="not-a-list",
        ),
        pytest.param(
            node_text() + "---\n" + node_text(),
            "f.yaml: document 2: $.metadata.name: a second node named 'n1'",
            "f.yaml: document 1",
            id="twice",
        ),
        pytest.param(
            node_text("devices: [{driver: gpu.example.com, count: many}]"),
            "f.yaml: document 1: $.devices[0].count: Expected `int`, got `str`",
            "count: 8",
            id="bad-devices",
        ),
        pytest.param(
            node_text("devices: [{driver: a.b, count: 1, pool: p}]")
            + "\n---\n"
            + node_text("devices: [{driver: a.b, count: 1, pool: p}]", "n2"),
            "f.yaml: document 2: $.devices: pool 'p' of a.b is that of node 'n1'",
            "of its own",
            id="one-pool-of-two-nodes",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1, annotations: {muster.dev/devices: '[]'}}\n"
            "devices: [{driver: a.b, count: 1}]",
            "f.yaml: document 1: $.metadata.annotations.muster.dev/devices: said twice",
            "$.devices",
            id="devices-twice",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Node\n",
            "f.yaml: document 1: $.metadata.name: required",
            "name",
            id="nameless",
        ),
    ],
)
def test_a_mistake_names_file_document_field_and_cure(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        nodes_from_text(text, "f.yaml")
    assert str(caught.value).startswith(message)
    assert hint in caught.value.hint


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "name", "annotations", "spec", "taints", "status", "capacity"]),
            inner,
        )
    ),
    max_leaves=8,
)


@given(body=st.dictionaries(st.sampled_from(["metadata", "spec", "status", "devices"]), JSON_VALUES))
def test_any_document_gives_a_node_or_one_clear_error(body: dict[str, object]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "Node", **body})
    try:
        nodes = nodes_from_text(text, "f.json")
    except ConfigError as error:
        named = str(error).startswith("f.json: document 1: $")
    else:
        named = bool(nodes[0]["metadata"]["name"])
    assert named
