"""What is served, as clients ask for it."""

from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.discovery import aggregated, api_group, api_groups, api_resources
from muster.apiserver.routing import Catalog

CATALOG = Catalog(KINDS)


def test_a_version_names_its_resources_and_subresources() -> None:
    document = api_resources(CATALOG, "scheduling.k8s.io", "v1alpha3")
    assert document["groupVersion"] == "scheduling.k8s.io/v1alpha3"
    assert [(row["name"], row["verbs"]) for row in document["resources"]][1:] == [
        ("podgroups/status", ["get", "patch", "update"])
    ]


def test_the_preferred_version_of_a_group_is_its_first() -> None:
    assert api_group(CATALOG, "scheduling.k8s.io")["preferredVersion"]["version"] == "v1beta1"
    assert [group["name"] for group in api_groups(CATALOG)["groups"]] == [
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "batch",
    ]


def test_the_aggregated_form_holds_a_half_of_the_whole() -> None:
    core, rest = aggregated(CATALOG, core=True), aggregated(CATALOG, core=False)
    assert [item["metadata"] for item in core["items"]] == [{}]
    assert [item["metadata"]["name"] for item in rest["items"]] == [
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "batch",
    ]
    pods = next(row for row in core["items"][0]["versions"][0]["resources"] if row["resource"] == "pods")
    assert pods["scope"] == "Namespaced"
    assert pods["subresources"][0]["responseKind"]["kind"] == "Pod"
