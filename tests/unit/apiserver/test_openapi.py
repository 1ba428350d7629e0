"""OpenAPI documents."""

import json

from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.openapi import document_of
from muster.apiserver.routing import Catalog
from muster.apiserver.schemas import load_schemas

CORE = document_of(Catalog(KINDS), load_schemas(), "", "v1")
GROUP = document_of(Catalog(KINDS), load_schemas(), "scheduling.k8s.io", "v1beta1")
SCHEMAS = CORE["components"]["schemas"]


def test_every_reference_leads_somewhere() -> None:
    for document in (CORE, GROUP):
        names = set(document["components"]["schemas"])
        text = json.dumps(document)
        found = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert found <= names


def test_a_kind_says_which_it_is_and_how_its_lists_are_merged() -> None:
    assert SCHEMAS["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"] == [
        {"group": "", "version": "v1", "kind": "Pod"}
    ]
    containers = SCHEMAS["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_a_patch_takes_field_validation_which_kubectl_looks_for() -> None:
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups/{name}"
    patch = GROUP["paths"][path]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "PodGroup"


def test_paths_are_those_that_are_served() -> None:
    assert set(CORE["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/status"]) == {
        "parameters",
        "get",
        "patch",
        "put",
    }
    assert set(CORE["paths"]["/api/v1/pods"]) == {"get"}
