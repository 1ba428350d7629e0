"""Namespaces."""

import pytest
from tests.unit.apiserver.strategies.full_server import SPACES, FullServer

from muster.apiserver.strategies.namespaces import NamespaceStrategy


def test_a_namespace_is_active_labelled_and_held() -> None:
    made = FullServer().create(SPACES, "third", status={"phase": "Terminating"})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "third"}
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_its_label_and_finalizers_are_not_written_by_hand() -> None:
    server = FullServer()
    server.create(SPACES, "third")
    labels = {"kubernetes.io/metadata.name": "zz", "a": "b"}
    changed = server.change(SPACES, "third", metadata={"labels": labels}, spec={"finalizers": []})
    assert changed["metadata"]["labels"] == {"kubernetes.io/metadata.name": "third", "a": "b"}
    assert changed["spec"] == {"finalizers": ["kubernetes"]}


def test_it_goes_when_it_is_finalized() -> None:
    server = FullServer()
    server.create(SPACES, "third")
    going = server.object("DELETE", f"{SPACES}/third")
    assert going["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in going["metadata"]
    server.object("PUT", f"{SPACES}/third/finalize", {"metadata": {"name": "third"}, "spec": {}})
    assert server.ask("GET", f"{SPACES}/third").status == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_first_namespaces_stay(name: str) -> None:
    code, message = FullServer().refusal("DELETE", f"{SPACES}/{name}")
    assert (code, message) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')


def test_a_name_is_a_label_and_a_finalizer_qualified() -> None:
    server = FullServer()
    assert server.create_faults(SPACES, metadata={"name": "a.b"}) == [
        'metadata.name: Invalid value: "a.b": must not contain dots'
    ]
    assert "neither a standard finalizer name" in server.create_faults(SPACES, spec={"finalizers": ["x"]})[0]


def test_a_phase_follows_the_deletion() -> None:
    server = FullServer()
    server.create(SPACES, "third")
    assert server.change_faults(SPACES, "third/status", status={"phase": "Terminating"}) == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]
    assert NamespaceStrategy().holds({"spec": {"finalizers": ["kubernetes"]}})
    assert ["default", "Active", "0s"] in server.table(SPACES)
