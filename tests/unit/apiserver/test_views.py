"""Stored objects as a version shows them."""

from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.views import view_of, without_type

GROUPS = next(kind for kind in KINDS if kind.kind == "PodGroup")


def test_another_version_is_the_same_object_under_another_name() -> None:
    stored = {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1beta1", "metadata": {"name": "g"}}
    assert view_of(GROUPS, "v1beta1", stored) is stored
    shown = view_of(GROUPS, "v1alpha3", stored)
    assert shown == {**stored, "apiVersion": "scheduling.k8s.io/v1alpha3"}
    assert stored["apiVersion"] == "scheduling.k8s.io/v1beta1"


def test_an_item_of_a_list_has_no_type() -> None:
    assert without_type({"kind": "K", "apiVersion": "v1", "metadata": {}}) == {"metadata": {}}
