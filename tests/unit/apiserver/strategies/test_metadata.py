"""Validation of metadata."""

from typing import Any

import pytest

from muster.apiserver.kinds import Cause
from muster.apiserver.strategies.metadata import validate_metadata, validate_metadata_change
from muster.apiserver.strategies.names import dns_subdomain


def faults(**meta: Any) -> list[Cause]:
    whole = {"name": "a", "namespace": "default", **meta}
    return validate_metadata(whole, namespaced=True, name_rule=dns_subdomain)


@pytest.mark.parametrize(
    ("meta", "field", "message"),
    [
        pytest.param(
            {"name": ""}, "metadata.name", "Required value: name or generateName is required", id="none"
        ),
        pytest.param({"namespace": ""}, "metadata.namespace", "Required value", id="no namespace"),
        pytest.param(
            {"generation": -1},
            "metadata.generation",
            "Invalid value: -1: must be greater than or equal to 0",
            id="generation",
        ),
        pytest.param(
            {"annotations": {"a": "x" * 262144}},
            "metadata.annotations",
            "Too long: may not be more than 262144 bytes",
            id="annotations too large together",
        ),
        pytest.param(
            {"finalizers": ["x"]},
            "metadata.finalizers[0]",
            'Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified',
            id="an unqualified finalizer",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            "metadata.finalizers",
            'Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot '
            "be both set",
            id="two ways to delete",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            "metadata.ownerReferences[0].uid",
            "Required value: must not be empty",
            id="an owner without uid",
        ),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "x", "uid": "u"}]},
            "metadata.ownerReferences[0].apiVersion",
            'Invalid value: "a/b/c": must be <group>/<version> or <version>',
            id="an owner of no version",
        ),
    ],
)
def test_bad_metadata_is_refused(meta: dict[str, Any], field: str, message: str) -> None:
    assert [(cause.field, cause.message) for cause in faults(**meta)] == [(field, message)]


def test_only_one_owner_controls() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "uid": "u", "controller": True}
    found = faults(ownerReferences=[{**owner, "name": "x"}, {**owner, "name": "y"}])
    assert found[0].message.endswith('Found "true" in references for Pod/x and Pod/y')


def test_a_name_and_its_prefix_are_both_checked() -> None:
    found = faults(name="Bad_x", generateName="Bad_")
    assert [cause.field for cause in found] == ["metadata.generateName", "metadata.name"]


def test_what_identifies_an_object_does_not_change() -> None:
    old = {"name": "a", "namespace": "n", "uid": "u"}
    found = validate_metadata_change({**old, "uid": "v"}, old)
    assert [(c.field, c.message) for c in found] == [
        ("metadata.uid", 'Invalid value: "v": field is immutable')
    ]


def test_what_is_being_deleted_gets_no_new_finalizer_but_may_lose_one() -> None:
    old = {"name": "a", "deletionTimestamp": "t", "finalizers": ["a.b/x", "a.b/z"]}
    found = validate_metadata_change({**old, "finalizers": ["a.b/x", "a.b/y"]}, old)
    assert found[0].message == (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a.b/y"}'
    )
    assert validate_metadata_change({**old, "finalizers": []}, old) == []
