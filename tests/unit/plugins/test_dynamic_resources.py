"""DynamicResources."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    DRIVER,
    given,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)

from muster.api.core import Pod, PodClaim, SchedulingGroup
from muster.api.devices import DeviceObject
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.framework.groups import ObjectKey
from muster.framework.ports import WriteClaim
from muster.framework.status import Verdict
from muster.plugins.dynamic_resources import CANNOT, NOT_THERE, DynamicResources
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod
from muster.testing.conformance import check_plugin


def pod_with(*claims: str, name: str = "p") -> Pod:
    return make_pod(name, uid=f"uid-{name}", resource_claims=[PodClaim(claim, claim) for claim in claims])


def cluster_with(*objects: DeviceObject, devices: int = 2) -> ClusterBuilder:
    """n1 with so many devices, n2 with one, n3 with none; the class "gpu" takes all of them."""
    cluster = make_cluster().nodes(3)
    own = [make_device(f"gpu-{index}", pair=index // 2) for index in range(devices)]
    for each in (
        make_slice("n1", *own),
        make_slice("n2", make_device("gpu-0", pair=0)),
        make_class(),
        *objects,
    ):
        cluster.state.devices.apply(each)
    return cluster


def feasible(snapshot: Snapshot, pod: Pod) -> list[bool]:
    return DynamicResources().filter(pod, snapshot, snapshot.live_rows()).feasible.tolist()


def test_it_keeps_the_contract() -> None:
    snapshot = cluster_with(make_claim("c"), make_claim("d")).snapshot()
    pods = [pod_with("c"), pod_with("d", name="q"), make_pod("r")]
    check_plugin(DynamicResources(), pods=pods, snapshots=[snapshot])


def test_a_pod_goes_where_its_devices_are_free() -> None:
    snapshot = cluster_with(make_claim("c", make_request("r", 2))).snapshot()
    verdict = DynamicResources().filter(pod_with("c"), snapshot, snapshot.live_rows())
    assert verdict.feasible.tolist() == [True, False, False]
    assert [reason.text for reason in verdict.reasons] == [CANNOT]


def test_devices_that_others_have_are_left_to_them() -> None:
    other = make_claim("other", allocation=given("gpu-0"))
    snapshot = cluster_with(make_claim("c", make_request("r", 2)), other).snapshot()
    assert feasible(snapshot, pod_with("c")) == [False, False, False]


def test_members_on_one_node_share_its_devices_between_them() -> None:
    fork = cluster_with(make_claim("c"), make_claim("d"), make_claim("e")).snapshot().fork()
    fork.place(pod_with("c"), 0)
    assert feasible(fork, pod_with("d", name="q")) == [True, True, False]
    fork.place(pod_with("d", name="q"), 0)
    assert feasible(fork, pod_with("e", name="s")) == [False, True, False]


def test_like_rows_with_a_member_each_are_searched_once() -> None:
    cluster = make_cluster().nodes(9)
    nodes = [make_slice(f"n{index + 1}", make_device("a"), make_device("b")) for index in range(9)]
    for each in (make_class(), *nodes, *(make_claim(f"c{index}") for index in range(10))):
        cluster.state.devices.apply(each)
    snapshot = cluster.snapshot()
    fork = snapshot.fork()
    for index in range(9):
        fork.place(pod_with(f"c{index}", name=f"p{index}"), index)
    assert feasible(fork, pod_with("c9", name="q")) == [True] * 9
    assert len(snapshot.devices.pools.found_out["offers"].answers) == 2  # one claim, and two together


def test_an_allocated_claim_pins_its_pods() -> None:
    snapshot = cluster_with(make_claim("c")).snapshot()
    writes = DynamicResources().prepare([(pod_with("c"), 1)], snapshot)
    (write,) = writes[ObjectKey("default", "p")]
    assert isinstance(write, WriteClaim)
    pinned = cluster_with(make_claim("c", allocation=write.allocation)).snapshot()
    verdict = DynamicResources().filter(pod_with("c"), pinned, pinned.live_rows())
    assert verdict.feasible.tolist() == [False, True, False]
    assert [reason.text for reason in verdict.reasons] == [NOT_THERE]


def test_the_gang_s_claims_are_written_together_with_their_users() -> None:
    shared, own = make_claim("c"), make_claim("d")
    snapshot = cluster_with(shared, own).snapshot()
    placed = [(pod_with("c", name="a"), 0), (pod_with("c", "d", name="b"), 0), (make_pod("plain"), 2)]
    writes = DynamicResources().prepare(placed, snapshot)
    assert set(writes) == {ObjectKey("default", "a"), ObjectKey("default", "b")}
    found = {
        write.claim.name: write for each in writes.values() for write in each if isinstance(write, WriteClaim)
    }
    assert [user.name for user in found["c"].reserved_for] == ["a", "b"]
    assert [user.name for user in found["d"].reserved_for] == ["b"]
    names = []
    for write in found.values():
        assert write.allocation is not None
        assert write.allocation.node_selector is not None
        names += [result.device for result in write.allocation.devices.results or ()]
    assert sorted(names) == ["gpu-0", "gpu-1"]


def test_another_user_of_a_claim_is_added_to_those_before() -> None:
    claim = make_claim("c", allocation=given("gpu-0"), users=("old",))
    snapshot = cluster_with(claim).snapshot()
    writes = DynamicResources().prepare([(pod_with("c"), 0)], snapshot)
    (write,) = writes[ObjectKey("default", "p")]
    assert isinstance(write, WriteClaim)
    assert write.allocation is None
    assert [user.name for user in write.reserved_for] == ["old", "p"]


def test_a_claim_of_the_group_is_reserved_for_the_group() -> None:
    cluster = cluster_with(make_claim("c"), make_claim("d"))
    cluster.state.devices.see_group(("default", "g"), "uid-g", (PodClaim("c", "c"), PodClaim("e", "d")))
    members = [replace_group(pod_with("c", "d", name=name)) for name in ("a", "b")]
    writes = DynamicResources().prepare([(member, 0) for member in members], cluster.snapshot())
    found = {write.claim.name: write for each in writes.values() for write in each}  # type: ignore[union-attr]
    (group,) = found["c"].reserved_for  # type: ignore[union-attr]
    assert (group.resource, group.name, group.uid, group.api_group) == (
        "podgroups",
        "g",
        "uid-g",
        "scheduling.k8s.io",
    )
    assert [user.uid for user in found["d"].reserved_for] == ["uid-a", "uid-b"]  # type: ignore[union-attr]
    cluster.state.devices.apply(make_claim("d", allocation=given("gpu-1"), users=("a", "b")))
    claim = make_claim("c", allocation=given("gpu-0"))
    assert is_ready(cluster, members[0])[0] is not Verdict.SUCCESS
    cluster.state.devices.apply(replace(claim, status=replace(claim.status, reserved_for=[group])))
    assert is_ready(cluster, members[0])[0] is Verdict.SUCCESS


def replace_group(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, scheduling_group=SchedulingGroup("g")))


def is_ready(cluster: ClusterBuilder, pod: Pod) -> tuple[Verdict, str]:
    node = cluster.state.node("n1")
    assert node is not None
    status = DynamicResources().is_ready(pod, node, cluster.snapshot())
    return status.verdict, status.message


def test_a_member_is_ready_when_the_watch_shows_its_claims_allocated_and_reserved() -> None:
    cluster = cluster_with(make_claim("c"))
    assert is_ready(cluster, pod_with("c"))[0] is Verdict.UNSCHEDULABLE
    cluster.state.devices.choose(("default", "c"), given("gpu-0"))
    assert is_ready(cluster, pod_with("c")) == (Verdict.WAIT, 'devices of claim "c" to be written')
    cluster.state.devices.apply(make_claim("c", allocation=given("gpu-0")))
    assert is_ready(cluster, pod_with("c")) == (Verdict.WAIT, 'claim "c" to be reserved')
    cluster.state.devices.apply(make_claim("c", allocation=given("gpu-0"), users=("p",)))
    assert is_ready(cluster, pod_with("c"))[0] is Verdict.SUCCESS


def test_a_device_that_another_claim_had_first_is_given_back() -> None:
    cluster = cluster_with(
        make_claim("c", allocation=given("gpu-0"), users=("p",), version="9"),
        make_claim("rival", allocation=given("gpu-0"), version="8"),
    )
    verdict, text = is_ready(cluster, pod_with("c"))
    assert verdict is Verdict.UNSCHEDULABLE
    assert 'claim "rival" of namespace default has a device of claim "c"' in text
    rival = replace(make_claim("rival", allocation=given("gpu-0"), version="10"))
    cluster.state.devices.apply(rival)
    assert is_ready(cluster, pod_with("c"))[0] is Verdict.SUCCESS


def test_pods_wait_for_claims_that_are_not_there() -> None:
    devices = cluster_with().state.devices.freeze()
    status = DynamicResources().check_claims([pod_with("c")], devices)
    assert status.message == 'pod p waits for resourceclaim "c", which does not exist'
    made = make_pod("p", resource_claims=[PodClaim("gpus", None, "t")])
    status = DynamicResources().check_claims([made], devices)
    assert status.message == 'pod p waits for the claim that is to be made for "gpus"'
    assert (
        DynamicResources()
        .check_claims([pod_with("c")], cluster_with(make_claim("c")).state.devices.freeze())
        .ok
    )


def test_only_what_could_help_wakes_who_waits() -> None:
    helps = next(
        rule.helps for rule in DynamicResources().hint_rules() if rule.change is Change.DEVICES_CHANGED
    )
    assert helps is not None
    rejected = Rejected(None, None, (pod_with("c"),))
    answers = [
        helps(rejected, ClusterEvent(Change.DEVICES_CHANGED, devices=found))
        for found in (
            make_claim("c", allocation=given("gpu-0")),
            make_claim("d", allocation=given("gpu-0")),
            make_claim("d"),
            make_slice("n9", make_device("x")),
        )
    ]
    assert answers == [Hint.QUEUE, Hint.SKIP, Hint.QUEUE, Hint.QUEUE]
    stranger = Rejected(None, None, (make_pod(),))
    assert helps(stranger, ClusterEvent(Change.DEVICES_CHANGED, devices=make_class())) is Hint.SKIP


def test_a_pair_of_devices_is_found_by_what_they_share() -> None:
    claim = make_claim("c", make_request("r", 2), match=f"{DRIVER}/pair")
    taken = make_claim("other", allocation=given("gpu-0"))
    snapshot = cluster_with(claim, taken, devices=4).snapshot()
    (write,) = DynamicResources().prepare([(pod_with("c"), 0)], snapshot)[ObjectKey("default", "p")]
    assert isinstance(write, WriteClaim)
    assert write.allocation is not None
    assert [result.device for result in write.allocation.devices.results or ()] == ["gpu-2", "gpu-3"]
