"""Sentences for the person whose job is pending."""

import numpy as np
import pytest
from msgspec.structs import replace

from muster.cluster.snapshot import Snapshot
from muster.placement.explain import GangFacts, explain_gang, make_ask, summarize_nodes
from muster.placement.relief import RunningGroup
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod


def running_on(snapshot: Snapshot) -> list[RunningGroup]:
    """Who holds what, by the group in the pod's spec (else the pod's own name)."""
    held: dict[str, dict[int, np.ndarray]] = {}  # type: ignore[type-arg]
    for row in snapshot.live_rows().tolist():
        for pod in snapshot.pods_on(row):
            group = pod.spec.scheduling_group
            name = f"default/{group.pod_group_name if group else pod.metadata.name}"
            rows = held.setdefault(name, {})
            rows[row] = rows.get(row, 0) + snapshot.request_of(pod)
    return [
        RunningGroup(
            name, np.array(sorted(rows), dtype=np.int32), np.array([rows[row] for row in sorted(rows)])
        )
        for name, rows in held.items()
    ]


def story() -> ClusterBuilder:
    """Twelve nodes with one GPU each; job-a runs on eight."""
    cluster = make_cluster().nodes(12, gpu=1)
    for index in range(8):
        cluster.running(f"a-{index}", f"n{index + 1}", group="job-a", cpu=1, gpu=1)
    return cluster


def sentence(
    cluster: ClusterBuilder, *shapes: tuple[int, dict[str, object]], needed: int | None = None
) -> str:
    snapshot = cluster.snapshot()
    members = [(make_pod("m", **words), count, snapshot.live) for count, words in shapes]  # type: ignore[arg-type]
    total = sum(count for count, _ in shapes)
    facts = explain_gang(snapshot, members, total if needed is None else needed, running_on(snapshot))
    return facts.sentence()


def test_the_story_is_told_as_promised() -> None:
    assert sentence(story(), (8, {"cpu": 1, "gpu": 1})) == (
        "needs 8 × 1 nvidia.com/gpu, 4 free; would fit when default/job-a ends, or with 4 more nodes like n1"
    )


def test_only_nodes_help_where_nobody_holds_enough() -> None:
    assert sentence(story(), (14, {"gpu": 1})) == (
        "needs 14 × 1 nvidia.com/gpu, 4 free; would fit with 10 more nodes like n1"
    )


def test_a_member_larger_than_any_node_is_told_so() -> None:
    cluster = make_cluster().nodes(2, gpu=8)
    assert sentence(cluster, (2, {"gpu": 9})) == (
        "needs 2 × 9 nvidia.com/gpu; "
        "no node is large enough for one member: asks 9 nvidia.com/gpu, largest node has 8"
    )


def test_a_member_that_no_single_node_can_hold_whole_is_told_what_comes_nearest() -> None:
    cluster = make_cluster().node(cpu=2, gpu=8).node(cpu=64)
    assert sentence(cluster, (1, {"cpu": 32, "gpu": 4})) == (
        "needs 1 × 32 cpu + 4 nvidia.com/gpu; "
        "no node is large enough for one member: n1 comes nearest, short of 30 cpu"
    )


def test_a_resource_that_nobody_offers_is_named() -> None:
    assert sentence(make_cluster().node(), (2, {"requests": {"x.y/z": 1}})) == (
        "needs 2 × 1 x.y/z; no node offers x.y/z"
    )


def test_a_cluster_without_nodes_is_told_so() -> None:
    assert sentence(make_cluster(), (2, {"cpu": 1})) == "needs 2 × 1 cpu; the cluster has no nodes"


def test_room_in_pieces_is_told_as_such() -> None:
    cluster = make_cluster().nodes(4, gpu=8)
    for index in range(4):
        cluster.running(f"a{index}", f"n{index + 1}", gpu=4)
    assert sentence(cluster, (2, {"gpu": 8})) == (
        "needs 2 × 8 nvidia.com/gpu, 16 free but at most 4 on one node, room for 0; "
        "would fit when default/a0 and default/a1 end, or with 2 more nodes like n1"
    )


def test_nodes_that_rules_forbid_are_told_apart() -> None:
    snapshot = story().snapshot()
    usable = snapshot.live.copy()
    usable[6:] = False
    facts = explain_gang(snapshot, [(make_pod("m", gpu=1), 6, usable)], 6, running_on(snapshot))
    assert facts.sentence() == (
        "needs 6 × 1 nvidia.com/gpu, 0 free on the 6 of 12 nodes that pass its rules; "
        "would fit when default/job-a ends, or with 6 more nodes like n1"
    )


def test_no_node_that_passes_the_rules_is_told_so() -> None:
    snapshot = story().snapshot()
    facts = explain_gang(snapshot, [(make_pod("m", gpu=1), 6, ~snapshot.live)], 6)
    assert facts.sentence() == "needs 6 × 1 nvidia.com/gpu; no node passes the rules of its members"


def test_members_of_several_shapes_are_listed() -> None:
    assert sentence(story(), (6, {"cpu": 4, "gpu": 1}), (6, {"cpu": 7}), needed=11) == (
        "needs 11 of 12 members (6 × 4 cpu + 1 nvidia.com/gpu and 6 × 7 cpu), room for 10; "
        "would fit when default/job-a ends, or with 1 more node like n1"
    )


def test_many_endings_are_cut_to_a_handful() -> None:
    cluster = make_cluster().nodes(8, gpu=1)
    for index in range(8):
        cluster.running(f"a{index}", f"n{index + 1}", gpu=1)
    text = sentence(cluster, (7, {"gpu": 1}))
    assert "when default/a0, default/a1, default/a2, default/a3, default/a4 and 2 more end" in text


def test_nothing_helps_who_names_a_node_that_lone_others_do_not_hold() -> None:
    cluster = make_cluster().node(cpu=2)
    snapshot = cluster.snapshot()
    pod = make_pod("m", cpu=1, node_selector={"kubernetes.io/hostname": "n1"})
    facts = explain_gang(snapshot, [(pod, 3, snapshot.live)], 3)
    assert facts.sentence() == "needs 3 × 1 cpu, 2 free; would not fit even if everything running ended"


def test_too_many_pods_are_counted_in_slots() -> None:
    assert sentence(make_cluster().node(pods=1), (2, {})) == (
        "needs 2 pod slots, 1 free; would fit with 1 more node like n1"
    )


def test_pod_slots_are_counted_once_beside_what_each_member_asks_for() -> None:
    assert sentence(make_cluster().node(pods=1, cpu=2), (3, {"cpu": 1})) == (
        "needs 3 × 1 cpu and 3 pod slots, 2 cpu free, 1 pod slot free, room for 1; "
        "would fit with 2 more nodes like n1"
    )


def test_a_shape_that_asks_for_nothing_else_asks_for_pod_slots() -> None:
    assert sentence(make_cluster().node(pods=9, cpu=1), (2, {}), (2, {"cpu": 1})) == (
        "needs 4 members (2 pod slots and 2 × 1 cpu), room for 3; would fit with 1 more node like n1"
    )


def test_members_that_only_their_claims_tell_apart_are_counted_together() -> None:
    assert sentence(make_cluster().node(pods=9, cpu=2), (1, {"cpu": 1}), (2, {"cpu": 1})) == (
        "needs 3 members (3 × 1 cpu), room for 2; would fit with 1 more node like n1"
    )


def test_several_shortages_are_told_with_their_resource() -> None:
    assert sentence(make_cluster().node(cpu=2, gpu=1), (3, {"cpu": 1, "gpu": 1})) == (
        "needs 3 × 1 cpu + 1 nvidia.com/gpu, 2 cpu free, 1 nvidia.com/gpu free, room for 1; "
        "would fit with 2 more nodes like n1"
    )


def test_a_group_that_fits_needs_no_help() -> None:
    assert sentence(make_cluster().node(), (2, {"cpu": 1})) == "needs 2 × 1 cpu, room for 2"


def test_memory_is_told_in_the_users_units() -> None:
    text = sentence(make_cluster().node(memory="8Gi"), (3, {"memory": "4Gi"}))
    assert text.startswith("needs 3 × 4Gi memory, 8Gi free;")


def test_host_ports_allow_one_member_a_node_and_none_where_the_port_is_taken() -> None:
    snapshot = make_cluster().nodes(3).running("old", "n1", host_ports=[80]).snapshot()
    ask = make_ask(make_pod(host_ports=[80]), 5, snapshot.live, snapshot)
    assert (ask.per_node_max, ask.usable.tolist()) == (1, [False, True, True])


def test_rows_of_deleted_nodes_are_no_room() -> None:
    cluster = make_cluster().nodes(2)
    cluster.state.remove_node("n1")
    snapshot = cluster.snapshot()
    everywhere = np.ones(2, dtype=np.bool_)
    assert make_ask(make_pod(), 1, everywhere, snapshot).usable.tolist() == [False, True]


@pytest.mark.parametrize(
    ("selector", "grows"),
    [
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, False),
        (
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]},
            False,
        ),
        ({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}, True),
    ],
)
def test_only_those_who_do_not_name_their_node_gain_by_new_ones(selector: dict, grows: bool) -> None:  # type: ignore[type-arg]
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [selector]}}
    }
    snapshot = make_cluster().node().snapshot()
    assert make_ask(make_pod(affinity=affinity), 1, snapshot.live, snapshot).can_grow is grows


def test_the_summary_of_a_pod_reads_as_stock_words_it() -> None:
    counts = {"node(s) were unschedulable": 1, "Insufficient cpu": 2}
    assert summarize_nodes(3, counts) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
    )
    assert summarize_nodes(0, {}) == "0/0 nodes are available: the cluster has no nodes."
    assert summarize_nodes(2, {}) == "0/2 nodes are available."


def test_what_is_left_out_is_said_unless_no_node_is_large_enough_anyway() -> None:
    facts = GangFacts(needed=2, fitting=2, live=2, usable=2, asks="2 × 1 cpu", leaves_out_pods=True)
    caveat = "; rules about other pods, and claims, are not reckoned with in this"
    assert facts.sentence().endswith(caveat)
    assert not replace(facts, impossible="no node offers x").sentence().endswith(caveat)


def test_ends_that_are_not_known_are_not_called_useless() -> None:
    facts = GangFacts(needed=2, fitting=1, live=2, usable=2, asks="2 × 1 cpu", endings=())
    assert "would not fit" not in facts.sentence()
    assert "would not fit even if" in replace(facts, endings=None).sentence()
