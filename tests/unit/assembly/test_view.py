"""The controllers' view: indexes that agree with the store, whatever happens to the objects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controllers.small_cluster import SmallServer

from muster.assembly.view import StoreView
from muster.controllers.ports import NODES, POD_GROUPS, PODS, Kind, Object

MAPS = Kind("", "v1", "configmaps")


class Fixture:
    """A store whose every change is applied to a view."""

    def __init__(self) -> None:
        self.server = SmallServer()
        self.view = StoreView(self.server.store, self.server.catalog)

    def put(self, resource: str, name: str, **fields: Any) -> None:
        row = self.server.catalog.by_name[resource]
        namespace = fields.pop("namespace", "default" if row.namespaced else "")
        old = self.server.store.get(row, namespace, name)
        metadata = {"name": name, "namespace": namespace, "uid": name, **fields.pop("metadata", {})}
        obj = {"apiVersion": "v1", "kind": row.kind, "metadata": metadata, **fields}
        write = self.server.store.create if old is None else self.server.store.update
        write(row, obj, 0.0)
        self.apply_last()

    def remove(self, resource: str, name: str) -> None:
        row = self.server.catalog.by_name[resource]
        obj = self.server.store.get(row, "default", name)
        if obj is not None:
            self.server.store.delete(row, obj, 0.0)
            self.apply_last()

    def apply_last(self) -> None:
        for change in self.server.store.changes_after(self.server.store.revision - 1):
            self.view.apply(change)


def names(objects: Any) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_a_change_says_what_was_and_what_is() -> None:
    fixture = Fixture()
    row = fixture.server.catalog.by_name["pods"]
    first = fixture.server.store.create(row, {"metadata": {"name": "p", "namespace": "a"}}, 0.0)
    second = fixture.server.store.update(row, {"metadata": {"name": "p", "namespace": "a"}}, 0.0)
    fixture.server.store.delete(row, second, 0.0)
    seen = [fixture.view.apply(change) for change in fixture.server.store.changes_after(0)]
    assert [(change.kind, change.before, change.after) for change in seen] == [
        (PODS, None, first),
        (PODS, first, second),
        (PODS, second, None),
    ]


def test_pods_are_found_by_node_and_by_group() -> None:
    fixture = Fixture()
    fixture.put("pods", "b", spec={"nodeName": "n1", "schedulingGroup": {"podGroupName": "g"}})
    fixture.put("pods", "a", spec={"schedulingGroup": {"podGroupName": "g"}})
    assert names(fixture.view.members("default", "g")) == ["b", "a"]
    assert names(fixture.view.pods_on("n1")) == ["b"]
    fixture.put("pods", "a", spec={"nodeName": "n1"})
    assert names(fixture.view.members("default", "g")) == ["b"]
    assert names(fixture.view.pods_on("n1")) == ["b", "a"]
    assert list(fixture.view.members("other", "g")) == []


def test_dependents_of_any_kind_are_found_by_their_owners_uid() -> None:
    fixture = Fixture()
    owned = {"ownerReferences": [{"uid": "x"}, {"uid": "y"}]}
    fixture.put("pods", "p", metadata=owned)
    fixture.put("configmaps", "m", metadata={"ownerReferences": [{"uid": "x"}]})
    assert [(kind.resource, obj["metadata"]["name"]) for kind, obj in fixture.view.dependents("x")] == [
        ("pods", "p"),
        ("configmaps", "m"),
    ]
    fixture.put("pods", "p", metadata={"ownerReferences": [{"uid": "y"}]})
    assert names(obj for _, obj in fixture.view.dependents("x")) == ["m"]
    fixture.remove("pods", "p")
    assert list(fixture.view.dependents("y")) == []


def test_lists_are_in_order_of_name_and_a_kind_not_served_has_none() -> None:
    fixture = Fixture()
    for name in ("b", "a", "c"):
        fixture.put("pods", name)
    assert names(fixture.view.list(PODS)) == ["a", "b", "c"]
    assert list(fixture.view.list(Kind("example.com", "v1", "widgets"))) == []
    assert fixture.view.get(Kind("example.com", "v1", "widgets"), "", "w") is None


def test_an_owner_references_kind_is_found_if_it_is_served() -> None:
    view = Fixture().view
    assert view.find_kind("v1", "Node") == (NODES, False)
    assert view.find_kind("scheduling.k8s.io/v1beta1", "PodGroup") == (POD_GROUPS, True)
    assert view.find_kind("jobset.example.com/v1", "JobSet") is None


def test_namespaced_kinds_leave_out_the_others() -> None:
    kinds = Fixture().view.namespaced_kinds()
    assert PODS in kinds
    assert NODES not in kinds


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "r"]),
        st.sampled_from(["", "n1", "n2"]),
        st.sampled_from(["", "g", "h"]),
        st.lists(st.sampled_from(["x", "y"]), max_size=2),
        st.booleans(),
    ),
    max_size=25,
)


@given(STEPS)
def test_the_indexes_agree_with_the_store(steps: list[tuple[str, str, str, list[str], bool]]) -> None:
    fixture = Fixture()
    for name, node, group, owners, removed in steps:
        if removed:
            fixture.remove("pods", name)
            continue
        spec: Object = {"nodeName": node, "schedulingGroup": {"podGroupName": group}}
        references = [{"uid": uid} for uid in owners]
        fixture.put("pods", name, spec=spec, metadata={"ownerReferences": references})
    view = fixture.view
    pods = list(view.list(PODS))
    for node in ("n1", "n2"):
        wanted = {pod["metadata"]["name"] for pod in pods if pod["spec"]["nodeName"] == node}
        assert set(names(view.pods_on(node))) == wanted
    for group in ("g", "h"):
        wanted = {
            pod["metadata"]["name"] for pod in pods if pod["spec"]["schedulingGroup"]["podGroupName"] == group
        }
        assert set(names(view.members("default", group))) == wanted
    for uid in ("x", "y"):
        wanted = {
            pod["metadata"]["name"] for pod in pods if {"uid": uid} in pod["metadata"]["ownerReferences"]
        }
        assert set(names(obj for _, obj in view.dependents(uid))) == wanted
