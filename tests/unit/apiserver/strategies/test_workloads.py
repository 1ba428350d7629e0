"""Workloads: trees of templates."""

from typing import Any

import pytest
from tests.unit.apiserver.small_server import JSON_PATCH
from tests.unit.apiserver.strategies.full_server import GANG, WORKLOADS, FullServer

from muster.apiserver.kinds import Object

BASIC: Object = {"basic": {}}


def leaf(name: str, **more: Any) -> Object:
    return {"name": name, "schedulingPolicy": GANG, **more}


def inner(name: str, *leaves: Object, **more: Any) -> Object:
    return {"name": name, "schedulingPolicy": BASIC, "podGroupTemplates": list(leaves), **more}


def faults(**spec: Any) -> list[str]:
    return FullServer().create_faults(WORKLOADS, spec=spec)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"podGroupTemplates": [leaf(f"t{i}") for i in range(9)]},
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            id="nine templates",
        ),
        pytest.param(
            {"podGroupTemplates": []},
            'spec: Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`',
            id="none",
        ),
        pytest.param(
            {"compositePodGroupTemplates": [{"name": "c", "schedulingPolicy": BASIC}]},
            'spec.compositePodGroupTemplates[0]: Invalid value: "c": must have at least one child '
            "PodGroupTemplate or CompositePodGroupTemplate",
            id="a composite without child",
        ),
        pytest.param(
            {"compositePodGroupTemplates": [inner("c", leaf("x")), inner("d", leaf("x"))]},
            'spec.compositePodGroupTemplates[1].podGroupTemplates[0].name: Duplicate value: "x"',
            id="a name on two branches",
        ),
        pytest.param(
            {"podGroupTemplates": [leaf("a", priorityClassName="hi"), leaf("b")]},
            "spec: Invalid value: null: detected multiple priority configurations",
            id="two priorities in a list",
        ),
        pytest.param(
            {"compositePodGroupTemplates": [inner("c", leaf("a", priority=1))]},
            "spec: Invalid value: null: all priority and priorityClassName values must be identical, "
            "detected "
            "multiple values",
            id="two priorities in a tree",
        ),
        pytest.param(
            {"podGroupTemplates": [leaf("a")], "controllerRef": {"kind": "a/b", "name": "n"}},
            "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
            id="a kind with a slash",
        ),
    ],
)
def test_a_bad_tree_is_refused(spec: dict[str, Any], fault: str) -> None:
    assert faults(**spec) == [fault]


def test_a_twin_in_one_list_is_printed_whole() -> None:
    found = faults(podGroupTemplates=[leaf("a"), leaf("a")])
    assert len(found) == 1
    assert found[0].startswith('spec.podGroupTemplates[1]: Duplicate value: {"name":"a",')


def test_four_levels_are_enough() -> None:
    tree = inner("c1", leaf("x"))
    for level in (2, 3):
        tree = {"name": f"c{level}", "schedulingPolicy": BASIC, "compositePodGroupTemplates": [tree]}
    server = FullServer()
    stored = server.create(WORKLOADS, "w", spec={"compositePodGroupTemplates": [tree]})
    assert stored["spec"]["podGroupTemplates"] is None
    deeper = {"name": "c4", "schedulingPolicy": BASIC, "compositePodGroupTemplates": [tree]}
    found = server.create_faults(WORKLOADS, spec={"compositePodGroupTemplates": [deeper]})
    assert len(found) == 1
    assert found[0].endswith("maximum template hierarchy depth is 4")
    assert '"SchedulingPolicy":{"Basic":{},"Gang":null}' in found[0]


def patched(server: FullServer, op: str, path: str, value: Any = None) -> list[str]:
    body = [{"op": op, "path": path} | ({} if value is None else {"value": value})]
    response = server.ask("PATCH", f"{WORKLOADS}/w", body, content=JSON_PATCH)
    assert response.object is not None
    causes = (response.object.get("details") or {}).get("causes", [])
    return [f"{cause['field']}: {cause['message']}" for cause in causes]


def test_templates_neither_come_nor_go_and_only_counts_change() -> None:
    server = FullServer()
    server.create(WORKLOADS, "w", spec={"podGroupTemplates": [leaf("a"), leaf("b")]})
    first = "/spec/podGroupTemplates/0"
    assert patched(server, "replace", f"{first}/schedulingPolicy/gang/minCount", 7) == []
    assert patched(server, "add", "/spec/podGroupTemplates/-", leaf("c")) == [
        "spec.podGroupTemplates[2]: Forbidden: item may not be added"
    ]
    assert patched(server, "remove", first) == ["spec.podGroupTemplates: Forbidden: item may not be removed"]
    assert patched(server, "add", f"{first}/disruptionMode", {"all": {}}) == [
        "spec.podGroupTemplates[0].disruptionMode: Invalid value: null: field is immutable"
    ]
    assert patched(server, "replace", f"{first}/schedulingPolicy", BASIC) == [
        "spec.podGroupTemplates[0].schedulingPolicy.basic: Invalid value: null: field is immutable",
        "spec.podGroupTemplates[0].schedulingPolicy.gang: Invalid value: null: field cannot be cleared "
        "once set",
    ]


def test_a_workload_is_touched_by_no_priority() -> None:
    template = leaf("a", priorityClassName="nobody-has-it")
    stored = FullServer().create(WORKLOADS, "w", spec={"podGroupTemplates": [template]})
    assert stored["spec"]["podGroupTemplates"][0]["priorityClassName"] == "nobody-has-it"
    assert "priority" not in stored["spec"]["podGroupTemplates"][0]


def test_composite_templates_need_their_gate() -> None:
    server = FullServer(gates=frozenset({"GenericWorkload"}))
    found = server.create_faults(WORKLOADS, spec={"compositePodGroupTemplates": [inner("c", leaf("x"))]})
    assert found == [
        'spec: Invalid value: "": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`'
    ]
