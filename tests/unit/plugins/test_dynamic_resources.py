"""DynamicResources."""

import numpy as np
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
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
from muster.api.devices import DeviceObject, Request, ResourceClaim
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.framework.groups import ObjectKey
from muster.framework.ports import MakeClaim, WriteClaim
from muster.framework.status import Verdict
from muster.plugins.dynamic_resources import CANNOT, NOT_THERE, DynamicResources
from muster.plugins.node_resources import NodeResourcesFit
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


def test_a_node_too_far_from_where_a_claim_is_shared_is_told_so() -> None:
    fork = cluster_with(make_claim("c")).snapshot().fork()
    fork.place(pod_with("c", name="first"), 0)
    assert feasible(fork, pod_with("c")) == [True, False, False]
    told = DynamicResources().example(pod_with("c"), fork, 1, CANNOT)
    assert told == "claim default/c is shared with a member on n1: no free devices are reached from both"


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
    assert status.message == (
        'pod p waits for its claim "gpus", which is to be made from resourceclaimtemplate "t": events of the '
        "pod say why it is not"
    )
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


GPU_POD = make_pod("p", uid="uid-p", gpu=2)


def backed_cluster(*objects: DeviceObject, gpu_on_n3: int = 0) -> ClusterBuilder:
    """n1 with two devices, n2 with one, n3 with GPUs of its own if any; the class "gpu" backs GPUs."""
    cluster = make_cluster().nodes(2).node(gpu=gpu_on_n3)
    found = make_class()
    for each in (
        make_slice("n1", make_device("gpu-0"), make_device("gpu-1")),
        make_slice("n2", make_device("gpu-0")),
        replace(found, spec=replace(found.spec, extended_resource_name="nvidia.com/gpu")),
        *objects,
    ):
        cluster.state.devices.apply(each)
    return cluster


def test_it_keeps_the_contract_for_extended_resources() -> None:
    pods = [GPU_POD, make_pod("q", uid="uid-q", gpu=1), make_pod("r")]
    check_plugin(DynamicResources(), pods=pods, snapshots=[backed_cluster(gpu_on_n3=4).snapshot()])


def test_an_extended_resource_is_had_from_devices_or_from_the_node() -> None:
    assert feasible(backed_cluster().snapshot(), GPU_POD) == [True, False, False]
    assert feasible(backed_cluster(gpu_on_n3=2).snapshot(), GPU_POD) == [True, False, True]
    taken = make_claim("other", allocation=given("gpu-0"))
    assert feasible(backed_cluster(taken).snapshot(), GPU_POD) == [False, False, False]


def test_members_that_ask_for_an_extended_resource_share_a_node_s_devices() -> None:
    fork = backed_cluster().snapshot().fork()
    fork.place(make_pod("q", uid="uid-q", gpu=1), 0)
    assert feasible(fork, GPU_POD) == [False, False, False]
    assert feasible(fork, make_pod("r", uid="uid-r", gpu=1)) == [True, True, False]


def test_a_claim_is_to_be_made_only_where_the_node_has_none_of_its_own() -> None:
    snapshot = backed_cluster(gpu_on_n3=2).snapshot()
    placed = [(GPU_POD, 0), (make_pod("q", uid="uid-q", gpu=1), 2)]
    ((key, (make,)),) = DynamicResources().prepare(placed, snapshot).items()
    assert key == ObjectKey("default", "p")
    assert isinstance(make, MakeClaim)
    assert [(each.name, each.exactly.count) for each in make.requests if each.exactly] == [
        (make.mappings[0].request_name, 2)
    ]
    assert [result.device for result in make.allocation.devices.results or ()] == ["gpu-0", "gpu-1"]


def test_devices_that_become_free_wake_who_asks_for_an_extended_resource() -> None:
    helps = next(
        rule.helps for rule in DynamicResources().hint_rules() if rule.change is Change.DEVICES_CHANGED
    )
    assert helps is not None
    rejected = Rejected(None, None, (GPU_POD,))
    freed, held = make_claim("other"), make_claim("other", allocation=given("gpu-0"))
    events = [ClusterEvent(Change.DEVICES_CHANGED, devices=found) for found in (freed, held)]
    assert [helps(rejected, event) for event in events] == [Hint.QUEUE, Hint.SKIP]


@settings(max_examples=60, deadline=None)
@drawn(
    offered=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    devices=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    asked=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    choices=st.lists(st.integers(0, 3), min_size=5, max_size=5),
)
def test_node_by_node_either_its_own_resource_or_its_devices_are_counted(
    offered: list[int], devices: list[int], asked: list[int], choices: list[int]
) -> None:
    cluster = make_cluster()
    found = make_class()
    cluster.state.devices.apply(
        replace(found, spec=replace(found.spec, extended_resource_name="nvidia.com/gpu"))
    )
    for index, count in enumerate(offered):
        cluster.node(gpu=count)
        there = [make_device(f"gpu-{number}") for number in range(devices[index])]
        cluster.state.devices.apply(make_slice(f"n{index + 1}", *there))
    room = [own or there for own, there in zip(offered, devices, strict=False)]
    fork = cluster.snapshot().fork()
    for number, count in enumerate(asked):
        wanted = make_pod(f"p{number}", uid=f"u{number}", gpu=count)
        rows = fork.live_rows()
        masks = [
            plugin.filter(wanted, fork, rows).feasible for plugin in (NodeResourcesFit(), DynamicResources())
        ]
        both = (masks[0] & masks[1]).tolist()
        assert both == [count <= left for left in room]
        row = choices[number] % len(room)
        if both[row]:
            fork.place(wanted, row)
            room[row] -= count


def scores(snapshot: Snapshot, pod: Pod) -> list[float]:
    return DynamicResources().score(pod, snapshot, np.array([0, 1], dtype=np.int32)).tolist()


def two_or_one(name: str) -> ResourceClaim:
    """A claim for two devices, or else for one."""
    alternatives = [make_request(name, count).exactly for name, count in (("two", 2), ("one", 1))]
    named = [replace(each, name=name) for each, name in zip(alternatives, ("two", "one"), strict=True)]
    return make_claim(name, Request("r", first_available=named))


def test_nodes_that_give_earlier_alternatives_are_better() -> None:
    snapshot = cluster_with(two_or_one("c"), make_claim("d")).snapshot()
    assert scores(snapshot, pod_with("c")) == [100, 0]
    assert scores(snapshot, pod_with("d")) == [0, 0]
    assert scores(snapshot, make_pod("r")) == [0, 0]


def test_what_members_have_got_counts_for_which_alternative_is_left() -> None:
    fork = cluster_with(two_or_one("c"), make_claim("d"), devices=2).snapshot().fork()
    fork.place(pod_with("d", name="q"), 0)
    assert scores(fork, pod_with("c")) == [0, 0]


def test_whoever_shares_a_claim_scores_what_it_has_got() -> None:
    fork = cluster_with(two_or_one("c"), devices=3).snapshot().fork()
    fork.place(pod_with("c", name="q"), 0)
    assert scores(fork, pod_with("c"))[0] == 100
