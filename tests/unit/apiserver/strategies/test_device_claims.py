"""Device classes, claims and templates."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import FullServer

from muster.apiserver.server import DEFAULT_GATES
from muster.apiserver.strategies.device_claims import DeviceClassStrategy

RESOURCE = "/apis/resource.k8s.io/v1/"
CLASSES, CLAIMS = RESOURCE + "deviceclasses", RESOURCE + "namespaces/default/resourceclaims"
TEMPLATES = RESOURCE + "namespaces/default/resourceclaimtemplates"
ONE: dict[str, Any] = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
GIVEN: dict[str, Any] = {
    "devices": {"results": [{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]}
}
USER = {"resource": "pods", "name": "p", "uid": "u"}


def test_a_request_is_for_one_device_unless_it_says_otherwise() -> None:
    made = FullServer().create(CLAIMS, "c", spec=ONE)
    asked = made["spec"]["devices"]["requests"][0]["exactly"]
    assert (asked["allocationMode"], asked["count"]) == ("ExactCount", 1)


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        ({"name": "r"}, "exactly one of `exactly` or `firstAvailable` is required"),
        ({"name": "r", "exactly": {"deviceClassName": ""}}, "Required value"),
        (
            {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}},
            "must not be specified when allocationMode is 'All'",
        ),
    ],
)
def test_a_bad_request_is_refused(request_: dict[str, Any], fault: str) -> None:
    found = FullServer().create_faults(CLAIMS, spec={"devices": {"requests": [request_]}})
    assert len(found) == 1
    assert found[0].endswith(fault)


def test_derived_attributes_need_their_gate_a_full_name_and_an_expression() -> None:
    def ask(**derived: str) -> dict[str, Any]:
        exactly = {"deviceClassName": "gpu", "derivedAttributes": [derived]}
        return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}

    good = ask(name="derived/numa", expression="1")
    made = FullServer().create(CLAIMS, "c", spec=good)
    assert "derivedAttributes" not in made["spec"]["devices"]["requests"][0]["exactly"]
    server = FullServer(gates=DEFAULT_GATES | {"DRADerivedAttributes"})
    made = server.create(CLAIMS, "c", spec=good)
    assert made["spec"]["devices"]["requests"][0]["exactly"]["derivedAttributes"]
    path = "spec.devices.requests[0].exactly.derivedAttributes[0]"
    faults = server.create_faults(CLAIMS, spec=ask(name="numa", expression=""))
    assert [fault.partition(": ")[0] for fault in faults] == [f"{path}.name", f"{path}.expression"]


def test_constraints_are_about_requests_of_the_claim() -> None:
    constraint = {"requests": ["other"], "matchAttribute": "gpu.example.com/pair"}
    spec = {"devices": ONE["devices"] | {"constraints": [constraint]}}
    assert (
        FullServer()
        .create_faults(CLAIMS, spec=spec)[0]
        .startswith('spec.devices.constraints[0].requests[0]: Invalid value: "other"')
    )


def test_a_claim_never_changes_what_it_asks() -> None:
    server = FullServer()
    server.create(CLAIMS, "c", spec=ONE)
    assert server.change_faults(CLAIMS, "c", spec={"devices": {"requests": []}}) == [
        "spec: Invalid value: null: field is immutable"
    ]


def test_an_allocation_is_given_once_and_taken_back_whole() -> None:
    server = FullServer()
    server.create(CLAIMS, "c", spec=ONE)
    server.change(CLAIMS, "c/status", status={"allocation": GIVEN, "reservedFor": [USER]})
    other = {"devices": {"results": [GIVEN["devices"]["results"][0] | {"device": "gpu-1"}]}}
    assert server.change_faults(CLAIMS, "c/status", status={"allocation": other}) == [
        "status.allocation: Invalid value: null: field cannot be modified once set"
    ]
    freed = server.change(CLAIMS, "c/status", status={"allocation": None, "reservedFor": None})
    assert freed["status"] == {}


def test_nobody_has_what_was_not_allocated() -> None:
    server = FullServer()
    server.create(CLAIMS, "c", spec=ONE)
    assert server.change_faults(CLAIMS, "c/status", status={"reservedFor": [USER]}) == [
        "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    ]


def test_admin_access_is_for_namespaces_that_allow_it() -> None:
    asked = {"deviceClassName": "gpu", "adminAccess": True}
    spec = {"devices": {"requests": [{"name": "r", "exactly": asked}]}}
    server = FullServer()
    refusal = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires"
    assert server.create_faults(CLAIMS, spec=spec)[0].startswith(refusal)
    assert server.create_faults(TEMPLATES, spec={"spec": spec})[0].startswith(refusal)
    labels = {"labels": {"resource.kubernetes.io/admin-access": "true"}}
    server.change("/api/v1/namespaces", "default", metadata=labels)
    server.create(CLAIMS, "c", spec=spec)
    server.create(TEMPLATES, "t", spec={"spec": spec})


def test_an_extended_resource_of_a_class_has_a_domain() -> None:
    found = FullServer().create_faults(CLASSES, spec={"extendedResourceName": "cpu"})
    assert found[0].startswith('spec.extendedResourceName: Invalid value: "cpu"')


def test_a_template_s_claims_are_checked_and_filled() -> None:
    server = FullServer()
    made = server.create(TEMPLATES, "t", spec={"spec": ONE})
    assert made["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    bad = {"devices": {"requests": [{"name": "R", "exactly": {"deviceClassName": "gpu"}}]}}
    assert server.create_faults(TEMPLATES, spec={"spec": bad})[0].startswith(
        'spec.spec.devices.requests[0].name: Invalid value: "R"'
    )


def selecting(expression: str) -> dict[str, Any]:
    return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}


WHY = (
    "Invalid value: \"foo\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' "
    "(in container '')\n | foo\n | ^"
)


def test_a_class_with_an_expression_that_does_not_compile_is_refused() -> None:
    found = FullServer().create_faults(CLASSES, spec={"selectors": [{"cel": {"expression": "foo"}}]})
    assert found == [f"spec.selectors[0].cel.expression: {WHY}"]


def test_so_is_a_claim_and_a_template_wherever_they_select() -> None:
    requests = [
        {"name": "a", "exactly": selecting("foo")},
        {"name": "b", "firstAvailable": [{"name": "c", **selecting("foo")}]},
    ]
    spec = {"devices": {"requests": requests}}
    for collection, given, before in ((CLAIMS, spec, "spec"), (TEMPLATES, {"spec": spec}, "spec.spec")):
        assert FullServer().create_faults(collection, spec=given) == [
            f"{before}.devices.requests[0].exactly.selectors[0].cel.expression: {WHY}",
            f"{before}.devices.requests[1].firstAvailable[0].selectors[0].cel.expression: {WHY}",
        ]


def test_an_expression_of_more_than_10_kib_is_too_long() -> None:
    found = FullServer().create_faults(
        CLAIMS, spec={"devices": {"requests": [{"name": "a", "exactly": selecting("a" * 10241)}]}}
    )
    where = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert found == [f"{where}: Too long: may not be more than 10240 bytes"]


def test_what_the_scheduler_cannot_evaluate_is_taken_where_stock_takes_it() -> None:
    asked = selecting('device.attributes["a"].?b.orValue("").find("x+") == "x"')
    made = FullServer().create(CLAIMS, "c", spec={"devices": {"requests": [{"name": "a", "exactly": asked}]}})
    assert made["spec"]["devices"]["requests"][0]["exactly"]["selectors"] == asked["selectors"]


def test_a_derived_attribute_must_give_a_plain_value() -> None:
    derived = [{"name": "x.example.com/a", "expression": "[1]"}]
    asked = {"deviceClassName": "gpu", "derivedAttributes": derived}
    server = FullServer(gates=DEFAULT_GATES | {"DRADerivedAttributes"})
    (found,) = server.create_faults(CLAIMS, spec={"devices": {"requests": [{"name": "a", "exactly": asked}]}})
    assert found.startswith(
        "spec.devices.requests[0].exactly.derivedAttributes[0].expression: Invalid value: "
    )
    assert found.endswith(", not list(int)")


def test_selectors_that_are_stored_are_not_read_again() -> None:
    nobody: Any = None
    bad, good = ({"spec": {"selectors": [{"cel": {"expression": each}}]}} for each in ("foo", "true"))
    assert DeviceClassStrategy().validate_change(bad, bad, nobody) == []
    assert len(DeviceClassStrategy().validate_change(bad, good, nobody)) == 1
