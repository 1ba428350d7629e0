"""The store: revisions, order, the past, and what is forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.kinds import Object
from muster.apiserver.store import Store
from muster.base.errors import Expired

MAPS = next(kind for kind in KINDS if kind.kind == "ConfigMap")
PODS = next(kind for kind in KINDS if kind.kind == "Pod")


def made(name: str, namespace: str = "default", **more: object) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, **more}


def changed(obj: Object, **more: object) -> Object:
    return {**obj, "metadata": dict(obj["metadata"]), **more}


def test_every_write_is_one_revision_and_one_change() -> None:
    store = Store()
    start = store.revision
    obj = store.create(MAPS, made("a"), 0)
    store.update(MAPS, changed(obj, data={"k": "v"}), 0)
    store.delete(MAPS, obj, 0)
    changes = store.changes_after(start)
    assert [change.type for change in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert [change.revision for change in changes] == [start + 1, start + 2, start + 3]
    assert store.revision == start + 3


def test_an_update_leaves_the_dict_that_was_stored_as_it_was() -> None:
    store = Store()
    before = store.create(MAPS, made("a"), 0)
    after = store.update(MAPS, changed(before, data={"k": "v"}), 0)
    assert "data" not in before
    assert before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]


def test_lists_are_in_order_of_namespace_and_name_as_text() -> None:
    store = Store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "c")):
        store.create(MAPS, made(name, namespace), 0)
    names = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in store.list(MAPS)]
    assert names == [("a-b", "y"), ("a", "c"), ("a", "z"), ("b", "x")]


def test_a_namespace_does_not_show_the_objects_of_one_that_starts_like_it() -> None:
    store = Store()
    for namespace in ("a", "a-b", "a0", "ab"):
        store.create(MAPS, made("x", namespace), 0)
    assert [obj["metadata"]["namespace"] for obj in store.list(MAPS, "a")] == ["a"]


def test_the_past_is_what_it_was() -> None:
    store = Store()
    first = store.create(MAPS, made("a"), 0)
    store.create(MAPS, made("b"), 0)
    moment = store.revision
    store.delete(MAPS, first, 0)
    store.create(MAPS, made("c"), 0)
    assert list(store.at(MAPS, None, moment)) == ["default/a", "default/b"]
    assert list(store.at(MAPS, None, store.revision)) == ["default/b", "default/c"]


def test_changes_that_are_too_old_are_forgotten_and_say_so() -> None:
    store = Store(kept_s=100)
    start = store.revision
    store.create(MAPS, made("a"), 0)
    store.create(MAPS, made("b"), 200)
    with pytest.raises(Expired, match="too old resource version"):
        store.changes_after(start)
    assert [change.object["metadata"]["name"] for change in store.changes_after(start + 1)] == ["b"]


def test_only_so_many_changes_are_kept() -> None:
    store = Store(kept_count=10)
    for index in range(3_000):
        store.create(MAPS, made(f"m{index}"), 0)
    assert len(store.changes_after(store.forgotten)) < 1_100


def test_a_listener_hears_of_its_own_kind_until_it_stops() -> None:
    store = Store()
    heard: list[str] = []
    stop = store.listen(MAPS, lambda: heard.append("map"))
    store.create(PODS, made("p"), 0)
    store.create(MAPS, made("a"), 0)
    stop()
    store.create(MAPS, made("b"), 0)
    assert heard == ["map"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abc"), st.sampled_from(["n", "m"])),
        max_size=30,
    )
)
def test_any_past_revision_equals_a_plain_record_of_it(operations: list[tuple[str, str, str]]) -> None:
    store = Store()
    model: dict[str, Object] = {}
    past = {store.revision: dict(model)}
    for verb, name, namespace in operations:
        key = f"{namespace}/{name}"
        current = store.get(MAPS, namespace, name)
        if verb == "put" and current is None:
            model[key] = store.create(MAPS, made(name, namespace), 0)
        elif verb == "put" and current is not None:
            model[key] = store.update(MAPS, changed(current, at=store.revision), 0)
        elif current is not None:
            store.delete(MAPS, current, 0)
            del model[key]
        past[store.revision] = dict(model)
    for revision, objects in past.items():
        assert store.at(MAPS, None, revision) == objects
        assert list(store.at(MAPS, "n", revision)) == sorted(key for key in objects if key.startswith("n/"))
