"""Strategic merge patches."""

from typing import Any

import pytest

from muster.apiserver.schemas import load_schemas
from muster.apiserver.strategic import PatchError, merge_strategically

POD = load_schemas().record("core.v1/Pod")
CURRENT = {
    "metadata": {"finalizers": ["a/a", "b/b"], "labels": {"x": "1", "y": "2"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "args": ["1"]}, {"name": "d", "image": "i"}],
        "tolerations": [{"key": "a"}, {"key": "b"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]},
}


def merged(patch: dict[str, Any]) -> dict[str, Any]:
    return merge_strategically(POD, CURRENT, patch)


def conditions(*items: dict[str, Any], **directives: Any) -> list[Any]:
    patched = merged({"status": {"conditions": list(items), **directives}})
    return [(item["type"], item["status"]) for item in patched["status"]["conditions"]]


def test_items_are_merged_by_their_key_and_keep_their_order() -> None:
    containers = merged({"spec": {"containers": [{"name": "d", "image": "j"}]}})["spec"]["containers"]
    assert containers == [{"name": "c", "image": "i", "args": ["1"]}, {"name": "d", "image": "j"}]


def test_a_new_item_comes_before_those_the_patch_does_not_name() -> None:
    assert conditions({"type": "N", "status": "False"}) == [("N", "False"), ("A", "True"), ("B", "True")]


def test_a_list_without_key_is_replaced() -> None:
    assert merged({"spec": {"tolerations": [{"key": "z"}]}})["spec"]["tolerations"] == [{"key": "z"}]


def test_a_list_inside_an_item_is_replaced_when_it_has_no_key() -> None:
    containers = merged({"spec": {"containers": [{"name": "c", "args": ["2"]}]}})["spec"]["containers"]
    assert containers[0]["args"] == ["2"]


def test_maps_are_merged_and_null_takes_away() -> None:
    assert merged({"metadata": {"labels": {"x": None, "z": "3"}}})["metadata"]["labels"] == {
        "y": "2",
        "z": "3",
    }


def test_a_set_grows_and_shrinks_by_value() -> None:
    assert merged({"metadata": {"finalizers": ["c/c"]}})["metadata"]["finalizers"] == ["c/c", "a/a", "b/b"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/a"]}}
    assert merged(patch)["metadata"]["finalizers"] == ["b/b"]


def test_an_item_can_be_deleted() -> None:
    assert conditions({"type": "A", "$patch": "delete"}) == [("B", "True")]


def test_a_list_can_be_replaced_after_all() -> None:
    assert conditions({"$patch": "replace"}, {"type": "N", "status": "False"}) == [("N", "False")]


def test_a_map_can_be_replaced_or_emptied() -> None:
    assert merged({"metadata": {"labels": {"$patch": "replace", "z": "3"}}})["metadata"]["labels"] == {
        "z": "3"
    }
    assert merged({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}


def test_what_was_not_there_cannot_be_replaced() -> None:
    assert (
        "annotations"
        not in merged({"metadata": {"annotations": {"$patch": "replace", "a": "b"}}})["metadata"]
    )


def test_a_map_may_be_replaced_as_a_whole_by_its_schema() -> None:
    budget = load_schemas().record("policy.v1/PodDisruptionBudget")
    current = {"spec": {"selector": {"matchLabels": {"a": "b"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"c": "d"}}}}
    assert merge_strategically(budget, current, patch) == patch


def test_an_order_can_be_asked_for() -> None:
    order = {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}
    assert conditions({"type": "A", "status": "False"}, **order) == [("B", "True"), ("A", "False")]
    patched = merged({"status": order})["status"]["conditions"]
    assert [item["type"] for item in patched] == ["B", "A"]


def test_only_the_keys_that_are_kept_stay() -> None:
    patch = {"name": "v", "configMap": {"name": "m"}, "$retainKeys": ["name", "configMap"]}
    assert merged({"spec": {"volumes": [patch]}})["spec"]["volumes"] == [
        {"name": "v", "configMap": {"name": "m"}}
    ]


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        pytest.param({"$patch": "frob"}, "unknown patch type", id="directive"),
        pytest.param({"spec": {"containers": [{"image": "i"}]}}, "merge key: name", id="no key"),
        pytest.param(
            {"spec": {"containers": [{"name": "c"}, 5]}}, "list element types are not identical", id="mixed"
        ),
        pytest.param({"$retainKeys": 5}, "expected a .*interface", id="keys that are no list"),
    ],
)
def test_a_patch_that_cannot_be_applied_is_refused(patch: dict[str, Any], why: str) -> None:
    with pytest.raises(PatchError, match=why):
        merged(patch)


def test_long_lists_take_no_quadratic_time() -> None:
    many = [{"type": f"T{index}", "status": "True"} for index in range(20_000)]
    current = {"status": {"conditions": many}}
    patched = merge_strategically(POD, current, {"status": {"conditions": many[::-1]}})
    assert patched["status"]["conditions"] == many[::-1]
