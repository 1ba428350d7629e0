"""What may change in a pod."""

from typing import Any

import pytest
from tests.unit.apiserver.small_server import MERGE_PATCH, STRATEGIC_PATCH
from tests.unit.apiserver.strategies.full_server import CONTAINER, PODS, FullServer

from muster.apiserver.kinds import Object

FROZEN = "spec: Forbidden: pod updates may not change fields other than"
ASKS: Object = {**CONTAINER, "resources": {"requests": {"cpu": "1"}}}


def affinity(*keys: str) -> Object:
    expressions = [{"key": key, "operator": "Exists"} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"schedulerName": "x"}, id="scheduler"),
        pytest.param({"nodeName": "n"}, id="node"),
        pytest.param({"schedulingGroup": {"podGroupName": "other"}}, id="group"),
        pytest.param({"nodeSelector": {"a": "b"}}, id="node selector of an ungated pod"),
        pytest.param({"terminationGracePeriodSeconds": 9}, id="grace"),
        pytest.param(
            {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "3"}}}]}, id="resources"
        ),
    ],
)
def test_most_of_a_pod_is_fixed(spec: dict[str, Any]) -> None:
    server = FullServer()
    server.pod("p", containers=[ASKS], schedulingGroup={"podGroupName": "g"})
    found = server.change_faults(PODS, "p", spec=spec)
    assert len(found) == 1
    assert found[0].startswith(FROZEN)


def test_images_deadlines_and_tolerations_may_change() -> None:
    server = FullServer()
    server.pod("p")
    spec = {
        "containers": [{**CONTAINER, "image": "j"}],
        "activeDeadlineSeconds": 9,
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }
    changed = server.change(PODS, "p", spec=spec)["spec"]
    assert changed["containers"][0]["image"] == "j"
    assert changed["tolerations"][0]["key"] == "a"
    assert len(changed["tolerations"]) == 3  # the two for lost nodes come back


def test_a_deadline_only_gets_nearer() -> None:
    server = FullServer()
    server.pod("p", activeDeadlineSeconds=10)
    path = "spec.activeDeadlineSeconds"
    assert server.change_faults(PODS, "p", spec={"activeDeadlineSeconds": 20}) == [
        f"{path}: Invalid value: 20: must be less than or equal to previous value"
    ]
    assert server.change_faults(PODS, "p", spec={"activeDeadlineSeconds": None}) == [
        f"{path}: Invalid value: null: must not update from a positive integer to nil value"
    ]


def test_containers_neither_come_nor_go() -> None:
    server = FullServer()
    server.pod("p")
    assert server.change_faults(PODS, "p", spec={"containers": [CONTAINER, {"name": "d", "image": "i"}]}) == [
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    ]


def test_gates_are_only_removed() -> None:
    server = FullServer()
    server.pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}])
    assert server.change(PODS, "p", spec={"schedulingGates": [{"name": "b"}]})["metadata"]["generation"] == 2
    assert server.change_faults(PODS, "p", spec={"schedulingGates": [{"name": "c"}]}) == [
        "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'c'"
    ]


def test_a_gated_pod_may_be_narrowed_and_not_moved() -> None:
    server = FullServer()
    server.pod("p", schedulingGates=[{"name": "a"}], nodeSelector={"a": "b"}, affinity=affinity("x"))
    server.change(PODS, "p", spec={"nodeSelector": {"c": "d"}, "affinity": affinity("x", "y")})
    found = server.change_faults(PODS, "p", spec={"nodeSelector": {"a": "z"}, "affinity": affinity("y")})
    assert [fault.rsplit(": ", 1)[1] for fault in found] == [
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        "only additions are allowed (no mutations or deletions)",
    ]


def patched(server: FullServer, sub: str, spec: Object) -> Object:
    return server.object("PATCH", f"{PODS}/p/{sub}", {"spec": spec}, content=STRATEGIC_PATCH)


def test_ephemeral_containers_are_added_through_their_own_path() -> None:
    server = FullServer()
    server.pod("p")
    changed = patched(server, "ephemeralcontainers", {"ephemeralContainers": [{"name": "e", "image": "i"}]})
    assert changed["spec"]["ephemeralContainers"][0]["name"] == "e"
    found = server.faults(
        "PATCH", f"{PODS}/p/ephemeralcontainers", {"spec": {"ephemeralContainers": []}}, content=MERGE_PATCH
    )
    assert 'existing ephemeral containers "e" may not be removed' in found[0]


def test_a_resize_changes_cpu_and_memory_and_nothing_else() -> None:
    server = FullServer()
    server.pod("p", containers=[ASKS])
    wanted = {**CONTAINER, "image": "ignored", "resources": {"requests": {"cpu": "2"}}}
    changed = patched(server, "resize", {"containers": [wanted]})
    assert changed["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert changed["spec"]["containers"][0]["image"] == "i"
    assert changed["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("resources", "fault"),
    [
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}},
            'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
            id="quality of service",
        ),
        pytest.param(
            {"requests": {"cpu": "1", "a.b/c": "1"}, "limits": {"a.b/c": "1"}},
            "spec: Forbidden: only cpu and memory resources are mutable",
            id="devices",
        ),
    ],
)
def test_a_resize_has_limits(resources: Object, fault: str) -> None:
    server = FullServer()
    server.pod("p", containers=[ASKS])
    body = {"spec": {"containers": [{**CONTAINER, "resources": resources}]}}
    assert server.faults("PATCH", f"{PODS}/p/resize", body, content=STRATEGIC_PATCH) == [fault]


def test_a_status_takes_any_phase_and_no_other_quality() -> None:
    server = FullServer()
    server.pod("p")
    assert server.change(PODS, "p/status", status={"phase": "Dancing"})["status"]["phase"] == "Dancing"
    status = {
        "qosClass": "Guaranteed",
        "podIP": "x",
        "nominatedNodeName": "N_",
        "conditions": [{"type": "a b"}],
    }
    found = server.change_faults(PODS, "p/status", status=status)
    assert [fault.split(":")[0] for fault in found] == [
        "status.conditions[0].Type",
        "status.nominatedNodeName",
        "status.qosClass",
        "status.podIPs[0]",
    ]


def test_a_bound_pod_is_nominated_for_nothing() -> None:
    server = FullServer()
    server.pod("p", nodeName="n")
    assert server.change_faults(PODS, "p/status", status={"nominatedNodeName": "m"}) == [
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    ]


def test_a_status_without_quality_keeps_it_and_claims_are_those_of_the_spec() -> None:
    server = FullServer()
    server.pod("p")
    assert server.change(PODS, "p/status", status=None)["status"] == {"qosClass": "BestEffort"}
    assert server.change_faults(PODS, "p/status", status={"resourceClaimStatuses": [{"name": "a"}]}) == [
        'status.resourceClaimStatuses[0].name: Invalid value: "a": must match the name of an entry in '
        "`spec.resourceClaims`"
    ]


GPU_LIMITS = {"limits": {"e.org/gpu": "1"}}
MAPPING = {"containerName": "c", "resourceName": "e.org/gpu", "requestName": "r"}


def test_what_is_said_of_claims_stays_unless_something_else_is_said() -> None:
    server = FullServer()
    server.pod("p", containers=[CONTAINER | {"resources": GPU_LIMITS}])
    said = {"resourceClaimName": "x", "requestMappings": [MAPPING]}
    server.change(PODS, "p/status", status={"extendedResourceClaimStatus": said})
    kept = server.change(PODS, "p/status", status={"extendedResourceClaimStatus": None})["status"]
    assert kept["extendedResourceClaimStatus"] == said
    other = server.change(
        PODS, "p/status", status={"extendedResourceClaimStatus": {"resourceClaimName": "y"}}
    )
    assert other["status"]["extendedResourceClaimStatus"] == said | {"resourceClaimName": "y"}


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        (
            {"requestMappings": []},
            ["requestMappings: Required value: at least one request mapping is required"],
        ),
        (
            {"requestMappings": [MAPPING | {"containerName": "d"}]},
            [
                'requestMappings[0].containerName: Invalid value: "d": must match the name of an entry in '
                "spec.initContainers.name or spec.containers.name"
            ],
        ),
        (
            {"requestMappings": [MAPPING | {"resourceName": "cpu"}]},
            [
                'requestMappings[0].resourceName: Invalid value: "cpu": must match the extended resource '
                "name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests"
            ],
        ),
        (
            {"requestMappings": [MAPPING, MAPPING]},
            [
                'requestMappings[1].containerName: Duplicate value: "c"',
                'requestMappings[1].resourceName: Duplicate value: "e.org/gpu"',
                'requestMappings[1].requestName: Duplicate value: "r"',
            ],
        ),
        ({"resourceClaimName": ""}, ["resourceClaimName: Required value"]),
    ],
)
def test_what_is_said_of_a_claim_in_place_of_resources_is_checked(
    change: dict[str, Any], faults: list[str]
) -> None:
    server = FullServer()
    server.pod("p", containers=[CONTAINER | {"resources": GPU_LIMITS}])
    said = {"resourceClaimName": "x", "requestMappings": [MAPPING]} | change
    found = server.change_faults(PODS, "p/status", status={"extendedResourceClaimStatus": said})
    assert found == [f"status.extendedResourceClaimStatus.{fault}" for fault in faults]


def test_a_container_that_ended_for_good_stays_ended() -> None:
    server = FullServer()
    server.pod("p", restartPolicy="Never")
    ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
    server.change(PODS, "p/status", status={"containerStatuses": [ended]})
    running = {"name": "c", "state": {"running": {}}}
    assert server.change_faults(PODS, "p/status", status={"containerStatuses": [running]}) == [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    ]
