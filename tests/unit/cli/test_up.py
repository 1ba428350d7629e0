"""Tests of cli/up.py: options become a plan, and every mistake in them is named before anything starts."""

import json
import os
import socket
from pathlib import Path

import pytest

from muster.apiserver.server import DEFAULT_GATES
from muster.base.errors import ConfigError
from muster.cli.up import check_kubeconfig_path, read_gates, read_nodes


def test_a_number_gives_nodes_of_the_default_shape() -> None:
    nodes = read_nodes("2", None)
    assert [node["metadata"]["name"] for node in nodes] == ["n1", "n2"]
    assert nodes[0]["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_a_file_gives_its_nodes(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus: {capacity: {cpu: 64}}\n")
    assert [node["metadata"]["name"] for node in read_nodes(str(file), None)] == ["big"]


def test_a_mistake_in_the_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("kind: Pod\n")
    with pytest.raises(ConfigError, match=f"{file}: document 1: "):
        read_nodes(str(file), None)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        pytest.param("nowhere.yaml", "--nodes: nowhere.yaml: No such file or directory", id="no-file"),
        pytest.param("3.5", "--nodes: 3.5: No such file or directory", id="no-number"),
        pytest.param("-3", "--nodes: must be between 0 and 100000, got -3", id="negative"),
    ],
)
def test_nodes_that_are_neither_number_nor_file_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nodes: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        read_nodes(nodes, None)
    assert str(caught.value) == message
    assert "file of Node manifests" in caught.value.hint


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nodes.bin"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        read_nodes(str(file), None)


def test_gates_are_switched_on_and_off() -> None:
    assert read_gates("") == DEFAULT_GATES
    gates = read_gates("DRAWorkloadResourceClaims=true,CompositePodGroup=false")
    assert gates == DEFAULT_GATES - {"CompositePodGroup"} | {"DRAWorkloadResourceClaims"}


@pytest.mark.parametrize("text", ["Unheard=true", "GenericWorkload", "GenericWorkload=yes"])
def test_a_gate_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        read_gates(text)


def test_a_shape_beside_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="--node-shape: says nothing beside a file"):
        read_nodes("nodes.yaml", "cpu=1")


# ── where the kubeconfig goes ────────────────────────────────────────────────────────────────────


def test_a_kubeconfig_of_another_cluster_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("apiVersion: v1\nkind: Config\nclusters: [{name: production}]\n")
    with pytest.raises(ConfigError, match="was not written by muster up"):
        check_kubeconfig_path(path)
    assert path.exists()


def ours(server: str) -> str:
    return json.dumps({"clusters": [{"name": "muster", "cluster": {"server": server}}]})


def test_an_empty_file_and_an_old_kubeconfig_of_ours_are_taken_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    path = tmp_path / "config"
    for text in ("", ours(f"https://127.0.0.1:{port}")):
        path.write_text(text)
        check_kubeconfig_path(path)
        assert not path.exists()


def test_the_kubeconfig_of_a_cluster_that_still_runs_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with socket.create_server(("127.0.0.1", 0)) as running:
        path.write_text(ours(f"https://127.0.0.1:{running.getsockname()[1]}"))
        with pytest.raises(ConfigError, match="leads to a muster up that still runs"):
            check_kubeconfig_path(path)
    assert path.exists()


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="is not a regular file"):
        check_kubeconfig_path(path)
    assert path.exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="its folder does not exist") as caught:
        check_kubeconfig_path(tmp_path / "no" / "config")
    assert "mkdir -p" in caught.value.hint


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        check_kubeconfig_path(tmp_path)
