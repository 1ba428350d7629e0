"""Reported faults that depend on the order of events: fed by hand, judged by what the scheduler asks for.

The name of a test ends with the id of its case in `tests/conformance/field_cases.yaml`.
"""

import numpy as np
import pytest
from msgspec.structs import replace
from tests.scenarios.field.bench import Bench, Seen, gone

from muster.api.core import LabelSelector
from muster.cluster.budgets import Budget
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    CompositeSeen,
    EvictDone,
    GroupGone,
    NodeGone,
    PdbSeen,
    PodGone,
    Synced,
    WriteFailed,
)
from muster.scheduling.metrics import ATTEMPTS
from muster.testing.builders import make_gang, make_group, make_node, make_pod

LATER = "2026-01-01T00:00:10Z"


def test_members_seen_before_a_raised_minimum_are_judged_by_it_once_it_is_seen_b003() -> None:
    bench = Bench(make_node("n1", cpu=7), make_group("g", 3, version="1"), *make_gang("g", 3, cpu=1))
    bench.run().accept()
    assert len(bench.binds) == 3
    late = [make_pod(f"late-{number}", group="g", cpu=1) for number in range(5)]
    bench.feed(*late, make_group("g", 8, version="2")).run(60)
    assert len(bench.binds) == 3


def test_one_refused_bind_does_not_silence_the_others_b006() -> None:
    bench = Bench(*(make_node(f"n{n}", cpu=2) for n in (1, 2)), make_group("g", 4), *make_gang("g", 4, cpu=1))
    bench.run().refuse("g-2")
    for name in ("g-0", "g-1", "g-3"):
        assert bench.event_reasons(name) == ["Scheduled"]
    assert bench.event_reasons("g-2") == ["FailedScheduling"]
    assert "True" not in bench.group_statuses("g")
    bench.run(30).accept()
    assert bench.bind_count("g-2") == 2
    assert bench.group_statuses("g")[-1] == "True"


@pytest.mark.parametrize("hopeless_count", [50])
def test_hopeless_gangs_of_high_priority_do_not_block_a_small_one_b017(hopeless_count: int) -> None:
    nodes = [make_node(f"n{number}", cpu=4, version="1") for number in range(100)]
    bench = Bench(*nodes)
    for number in range(hopeless_count):
        name = f"hopeless-{number}"
        selector = {"none": "such"}
        pods = make_gang(name, 20, cpu=1, priority=1000, node_selector=selector)
        bench.feed(make_group(name, 20, priority=1000), *pods)
    bench.feed(make_group("ok", 4, priority=0), *make_gang("ok", 4, cpu=1, priority=0))
    bench.run(1)
    assert set(bench.placed) == {f"ok-{number}" for number in range(4)}
    before = attempts(bench)
    for second in range(60):  # heartbeats that change nothing a refusal was about
        for number in range(second % 10, 100, 10):
            bench.feed(make_node(f"n{number}", cpu=4, version=str(second + 2)))
        bench.run(1)
    assert attempts(bench) - before <= hopeless_count * 10, "backoff, not heartbeats, sets the pace"


def test_the_group_seen_after_its_pods_starts_them_at_once_b024() -> None:
    bench = Bench(make_node("n1", cpu=4), *make_gang("g", 2, cpu=1))
    bench.run(0.2).feed(make_group("g", 2)).run(1)
    assert set(bench.placed) == {"g-0", "g-1"}


def test_room_that_comes_between_the_request_and_the_attempt_is_used_b029() -> None:
    blocker = make_pod("blocker", cpu=1, node="n1")
    bench = Bench(make_node("n1", cpu=1), blocker, make_group("g", 1), make_pod("g-0", group="g", cpu=1))
    bench.run().feed(gone(blocker)).run(1)
    assert set(bench.placed) == {"g-0"}


def test_a_refused_group_costs_one_attempt_not_one_per_member_b030() -> None:
    bench = Bench(make_node("n1", cpu=4))
    for number in range(10):
        bench.feed(make_group(f"big-{number}", 16), *make_gang(f"big-{number}", 16, cpu=1))
    bench.feed(make_group("small", 2), *make_gang("small", 2, cpu=1))
    bench.run(0.5)
    assert set(bench.placed) == {"small-0", "small-1"}
    assert attempts(bench) == 11
    bench.accept().run(60)
    assert attempts(bench) <= 11 + 10 * 8, "retries keep to the backoff"


def test_pods_of_a_node_that_comes_back_still_take_its_room_b032() -> None:
    daemon = make_pod("daemon", cpu=3, node="n1")
    bench = Bench(make_node("n1", cpu=8), daemon)
    bench.feed(NodeGone("n1"), make_node("n1", cpu=8, uid="again"))
    bench.feed(make_group("g", 2), *make_gang("g", 2, cpu=3)).run(30)
    assert bench.binds == []


def test_a_member_deleted_while_assumed_is_forgotten_b035() -> None:
    first = make_pod("g-0", group="g", cpu=1)
    bench = Bench(make_node("n1", cpu=4), make_group("g", 2), first, make_pod("g-1", group="g", cpu=1))
    bench.run()
    assert set(bench.placed) == {"g-0", "g-1"}
    leaving = replace(first, metadata=replace(first.metadata, deletion_timestamp=LATER))
    bench.feed(leaving, gone(first), PodGone(ObjectKey("default", "g-1"), "uid-g-1"))
    bench.feed(make_pod("g-1", uid="again", group="g", cpu=1)).run(60)
    assert bench.bind_count("g-1") == 1, "one member of two waits"


def test_run_and_deleted_pods_leave_no_trace_in_the_pod_count_b041() -> None:
    bench = Bench(make_node("n1", cpu=32, pods=3))
    for round_ in range(50):
        pods = [make_pod(f"p-{round_}-{number}", node="n1", cpu=1) for number in range(3)]
        bench.feed(*pods, *(gone(pod) for pod in pods))
    bench.feed(make_group("g", 3), *make_gang("g", 3, cpu=1)).run(1)
    assert set(bench.placed) == {"g-0", "g-1", "g-2"}


def test_a_thousand_abandoned_attempts_leave_the_room_as_it_was_b045() -> None:
    stays = make_pod("stays", node="n1", cpu=1)
    bench = Bench(make_node("n1", cpu=4), stays, make_group("g", 4), *make_gang("g", 4, cpu=1))
    for number in range(1000):
        blocker = make_pod(f"blocker-{number}", node="n1", cpu=1)
        bench.feed(blocker, gone(blocker)).run()
    assert bench.binds == []
    assert attempts(bench) >= 1000
    bench.feed(make_pod("whole", cpu=3)).run(1)
    assert bench.placed == {"whole": "n1"}


def test_a_lowered_minimum_of_a_tree_starts_the_groups_that_wait_b055() -> None:
    root = make_group("root", 3, is_composite=True, version="1")
    bench = Bench(*(make_node(f"n{number}", cpu=1) for number in range(4)), CompositeSeen(root))
    for name in ("a", "b", "c"):
        bench.feed(make_group(name, 2, parent=root.key))
    bench.feed(*make_gang("a", 2, cpu=1), *make_gang("b", 2, cpu=1)).run(60)
    assert bench.binds == []
    bench.feed(CompositeSeen(replace(root, min_count=2, version="2"))).run(1)
    assert set(bench.placed) == {"a-0", "a-1", "b-0", "b-1"}
    bench.accept().feed(CompositeSeen(replace(root, min_count=3, version="3"))).run(60)
    assert bench.evictions == []


def test_ended_pods_and_their_groups_weigh_nothing_b046() -> None:
    bench = Bench(make_node("n1", cpu=4))
    for number in range(50):
        pods = make_gang(f"old-{number}", 4, cpu=1, node="n1", phase="Succeeded")
        bench.feed(make_group(f"old-{number}", 4), *pods)
    bench.feed(make_group("new", 4), *make_gang("new", 4, cpu=1)).run(1)
    assert len(bench.binds) == 4


def test_a_node_that_goes_before_the_attempt_is_not_used_b078() -> None:
    nodes = [make_node(f"n{number}", cpu=1) for number in (1, 2, 3, 4)]
    bench = Bench(*nodes, make_group("g", 3), *make_gang("g", 3, cpu=1))
    bench.feed(NodeGone("n3")).run(1)
    assert set(bench.placed.values()) == {"n1", "n2", "n4"}


def test_a_node_that_goes_while_a_bind_is_on_the_wire_is_not_tried_again_b078() -> None:
    nodes = [make_node(f"n{number}", cpu=1) for number in (1, 2, 3)]
    bench = Bench(*nodes, make_group("g", 3), *make_gang("g", 3, cpu=1)).run()
    lost = next(name for name, node in bench.placed.items() if node == "n3")
    bench.feed(NodeGone("n3")).refuse(lost, code=404, reason="NotFound")
    bench.feed(make_node("n4", cpu=1)).run(30)
    assert bench.placed[lost] == "n4"


@pytest.mark.parametrize("order", ["added first", "deleted first"])
def test_a_pod_made_again_under_its_name_is_another_pod_b103(order: str) -> None:
    old = make_pod("g-0", group="g", cpu=1)
    new = make_pod("g-0", uid="again", group="g", cpu=1)
    bench = Bench(make_node("n1", cpu=2), make_group("g", 2), old, make_pod("g-1", group="g", cpu=1)).run()
    assert bench.bind_count("g-0") == 1
    bench.feed(*((new, gone(old)) if order == "added first" else (gone(old), new)))
    bench.feed(BindFailed(ObjectKey("default", "g-0"), "uid-g-0", "n1", 409, "Conflict", "another uid"))
    bench.feed(BindDone(ObjectKey("default", "g-1"), "uid-g-1", "n1")).run(30)
    assert [bind.uid for bind in bench.binds if bind.key.name == "g-0"] == ["uid-g-0", "again"]


def test_nothing_stays_in_flight_when_members_are_replaced_during_failing_attempts_b104() -> None:
    bench = Bench(make_node("n1", cpu=1), make_group("g", 2), make_pod("g-1", group="g", cpu=1))
    for number in range(1000):
        pod = make_pod("g-0", uid=f"g-0-{number}", group="g", cpu=1)
        bench.feed(pod).run().feed(gone(pod))
    report = bench.run(60).scheduler.report()
    assert bench.binds == []
    assert len(report.pending) == 1


def test_a_group_made_again_under_its_name_is_judged_by_the_new_one_b106() -> None:
    old_pod, new_pod = make_pod("a", group="b", cpu=1), make_pod("a", uid="again", group="b", cpu=1)
    other = make_pod("other", group="b", cpu=1)
    bench = Bench(make_node("n1", cpu=8), make_group("b", 4), old_pod, other).run()
    bench.feed(gone(old_pod), new_pod, GroupGone(ObjectKey("default", "b"), "uid-b")).run(30)
    assert bench.binds == []
    bench.feed(make_group("b", 2, uid="again")).run(1)
    assert set(bench.placed) == {"a", "other"}
    bench.accept()
    assert {patch.uid for patch in bench.group_patches if "True" in str(patch)} == {"again"}


def test_a_group_made_again_under_its_name_may_use_another_rack_b106() -> None:
    bench = Bench(*(make_node(f"n{n}", cpu=2, labels={"rack": f"r{n}"}) for n in (1, 2)))
    old = make_pod("old", group="b", cpu=2, node="n1")
    bench.feed(make_group("b", 2, topology_keys=("rack",)), old, make_pod("late", group="b", cpu=1)).run(5)
    assert bench.binds == [], "the running member holds the group to a rack that is full"
    new = make_gang("b", 2, cpu=1)
    bench.feed(gone(old), PodGone(ObjectKey("default", "late"), "uid-late"), *new)
    bench.feed(GroupGone(ObjectKey("default", "b"), "uid-b"), make_pod("fills", cpu=2, node="n1")).run(5)
    bench.feed(make_group("b", 2, uid="again", topology_keys=("rack",))).run(1)
    assert bench.placed == {"b-0": "n2", "b-1": "n2"}


def test_an_old_update_of_an_assumed_pod_does_not_send_a_second_bind_b107() -> None:
    first = make_pod("g-0", group="g", cpu=1, version="5")
    bench = Bench(make_node("n1", cpu=1), make_node("n2", cpu=1), make_group("g", 2), first)
    bench.feed(make_pod("g-1", group="g", cpu=1)).run()
    bench.feed(make_pod("g-0", group="g", cpu=1, version="6", labels={"x": "y"}))
    bench.feed(make_pod("other", cpu=1)).run(60)
    assert bench.bind_count("g-0") == 1
    assert "other" not in bench.placed, "the room of the members is theirs"


def test_a_pod_that_the_server_has_bound_elsewhere_is_taken_as_bound_there_b107() -> None:
    bench = Bench(make_node("n1", cpu=1), make_node("n2", cpu=1), make_pod("p", cpu=1)).run()
    elsewhere = "n2" if bench.placed["p"] == "n1" else "n1"
    bench.refuse("p", code=409, reason="Conflict").feed(make_pod("p", cpu=1, node=elsewhere)).run(60)
    assert bench.bind_count("p") == 1
    bench.feed(make_pod("q", cpu=1)).run(1)
    assert bench.placed["q"] != elsewhere


@pytest.mark.parametrize(("cpu", "bound"), [pytest.param(5, 0, id="short"), pytest.param(6, 2, id="enough")])
def test_sidecars_and_overhead_count_b110(cpu: int, bound: int) -> None:
    sidecar = {
        "name": "side",
        "image": "i",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}},
    }
    pods = make_gang("g", 2, cpu=1, init_containers=[sidecar], overhead={"cpu": "1"})
    bench = Bench(make_node("n1", cpu=cpu), make_group("g", 2), *pods).run(30)
    assert len(bench.binds) == bound


@pytest.mark.parametrize("seed", range(200))
def test_a_scheduler_that_takes_over_amid_changes_knows_what_is_there_b127(seed: int) -> None:
    generator = np.random.default_rng(seed)
    bench = Bench(make_node("n1", cpu=100), synced=False)
    changes: list[tuple[float, Seen]] = [(float(generator.random()), Synced())]
    for number in range(100):
        old = make_pod(f"p-{number}", uid=f"old-{number}", node="n1", cpu=1)
        new = make_pod(f"p-{number}", uid=f"new-{number}", node="n1", cpu=1)
        lives = (old, gone(old), new) if number < 96 else (old, gone(old))
        changes += zip(sorted(generator.random(len(lives))), lives, strict=True)
    for _, change in sorted(changes, key=lambda each: each[0]):
        bench.feed(change)
    bench.feed(make_group("g", 4), *make_gang("g", 4, cpu=1)).run(1)
    assert len(bench.binds) == 4, "exactly four cores are left"


def test_a_failed_gang_says_why_once_not_once_per_member_b147() -> None:
    nodes = [
        make_node("n1", cpu=1, labels={"pool": "ours"}),
        make_node("n2", cpu=64, labels={"pool": "other"}),
        make_node("n3", cpu=64, labels={"pool": "ours"}, taints=[{"key": "k", "effect": "NoSchedule"}]),
    ]
    pods = make_gang("g", 80, cpu=2, node_selector={"pool": "ours"})
    bench = Bench(*nodes, make_group("g", 80), *pods).run(0.5)
    failed = [event for event in bench.events if event.reason == "FailedScheduling"]
    assert 1 <= len(failed) <= 10
    message = group_message(bench, "g")
    for part in ("80", "cpu", "taint", "affinity"):
        assert part in message


def test_a_failed_tree_names_the_group_that_failed_b147() -> None:
    nodes = [
        make_node("n1", cpu=1, labels={"pool": "ours"}),
        make_node("n2", cpu=80, labels={"pool": "other"}),
        make_node("n3", cpu=64, labels={"pool": "ours"}, taints=[{"key": "k", "effect": "NoSchedule"}]),
    ]
    root = make_group("root", 2, is_composite=True)
    bench = Bench(*nodes, CompositeSeen(root))
    bench.feed(make_group("fits", 2, parent=root.key), *make_gang("fits", 2, cpu=1))
    pods = make_gang("big", 80, cpu=2, node_selector={"pool": "ours"})
    bench.feed(make_group("big", 80, parent=root.key), *pods).run(0.5)
    assert bench.binds == []
    assert len([event for event in bench.events if event.reason == "FailedScheduling"]) <= 20
    assert "default/big" in group_message(bench, "fits")
    for name in ("fits", "big"):
        for part in ("80", "cpu", "taint", "affinity"):
            assert part in group_message(bench, name), part


def test_a_status_write_that_met_a_conflict_is_said_again_b149() -> None:
    bench = Bench(make_node("n1", cpu=4), make_group("g", 4), *make_gang("g", 4, cpu=1)).run().accept()
    patch = bench.group_patches[-1]
    assert bench.group_statuses("g") == ["True"]
    bench.feed(WriteFailed(patch, 409, "the object has been modified")).run(60)
    assert bench.group_statuses("g") == ["True", "True"]


def test_a_pod_of_another_scheduler_that_comes_before_the_attempt_is_seen_b150() -> None:
    bench = Bench(make_node("n1", cpu=4), make_group("g", 4), *make_gang("g", 4, cpu=1))
    bench.feed(make_pod("x", cpu=1, node="n1", scheduler="other")).run(30)
    assert bench.binds == []


def attempts(bench: Bench) -> int:
    """How many attempts the scheduler has made, by its own count."""
    counters = bench.scheduler.metrics.counters
    return sum(count for (name, _), count in counters.items() if name == ATTEMPTS)


def group_message(bench: Bench, name: str) -> str:
    """The last message of PodGroupInitiallyScheduled of this group."""
    said = [
        condition.message or ""
        for patch in bench.group_patches
        if patch.key.name == name
        for condition in patch.set_conditions
        if condition.type == "PodGroupInitiallyScheduled"
    ]
    return said[-1]


# ── preemption ───────────────────────────────────────────────────────────────────────────────────


def test_members_beyond_the_minimum_of_equal_standing_evict_nobody_b019() -> None:
    bench = Bench(make_node("n1", cpu=40))
    for name in ("a", "b"):
        bench.feed(make_group(name, 1, priority=5), *make_gang(name, 5, cpu=7, priority=5)).run(1)
    bench.accept().run(3600)
    assert len(bench.binds) == 5
    assert bench.evictions == []


def test_whole_groups_of_equal_standing_evict_nobody_b020() -> None:
    bench = Bench(*(make_node(f"n{number}", cpu=3) for number in range(4)))
    for number in range(24):
        group = make_group(f"g{number:02}", 1, priority=5, disruption_mode="all")
        bench.feed(group, *make_gang(group.key.name, 1, cpu=1, priority=5)).run(1)
    bench.accept().run(3600)
    assert len(bench.placed) == 12
    assert bench.evictions == []


def test_a_preemptor_is_bound_though_no_event_wakes_it_b026() -> None:
    low = make_pod("low-0", cpu=1, node="n1", group="low", priority=1, version="1")
    bench = Bench(make_node("n1", cpu=1, version="1"), make_group("low", 1, priority=1), low)
    bench.feed(make_group("high", 1, priority=10), *make_gang("high", 1, cpu=1, priority=10)).run(1)
    assert bench.evictions == ["low-0"]
    bench.obey().feed(make_node("n1", cpu=1, version="2", labels={"new": "label"})).run(1)
    bench.scheduler.state.remove_pod(("default", "low-0"), "uid-low-0")  # nobody is told
    bench.run(300)
    assert bench.placed == {"high-0": "n1"}


def test_one_victim_is_asked_to_leave_though_the_watch_is_late_b043() -> None:
    lows = [make_pod(f"low-{number}", cpu=1, node="n1", priority=1) for number in range(2)]
    bench = Bench(make_node("n1", cpu=2, version="1"), *lows)
    bench.feed(make_group("high", 1, priority=10), *make_gang("high", 1, cpu=1, priority=10)).run(0.5)
    for version in ("2", "3"):
        bench.feed(make_node("n1", cpu=2, version=version, labels={"v": version})).run(2)
    assert len(bench.evictions) == 1


def test_victims_where_nobody_is_nominated_are_waited_for_too_b065() -> None:
    bench = Bench(*(make_node(f"n{n}", cpu=1, labels={"rack": f"r{(n + 1) // 2}"}) for n in range(1, 5)))
    for number, name in enumerate("abcd", start=1):
        bench.feed(make_pod(name, cpu=1, node=f"n{number}", priority=1, labels={"x": "1"}, version="1"))
    term = {"labelSelector": {"matchLabels": {"x": "1"}}, "topologyKey": "rack"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    bench.feed(make_group("p", 1, priority=10), *make_gang("p", 1, cpu=1, priority=10, affinity=apart)).run(1)
    assert sorted(bench.evictions) in (["a", "b"], ["c", "d"])
    bench.obey(grace_s=60)
    for version in range(2, 7):
        bench.feed(make_node("n1", cpu=1, labels={"rack": "r1", "v": str(version)}, version=str(version)))
        bench.run(8)
    assert len(bench.evictions) == 2
    first, second = bench.evictions
    bench.end(first).run(5)
    assert bench.placed == {}
    assert len(bench.evictions) == 2
    bench.end(second).run(30)
    assert list(bench.placed) == ["p-0"]


def test_no_second_wave_while_the_first_victims_are_leaving_b066() -> None:
    bench = Bench(*(make_node(f"n{number}", cpu=1, version="1") for number in range(4)))
    for number in range(4):
        bench.feed(make_pod(f"low-{number}", cpu=1, node=f"n{number}", priority=1, version="1"))
    bench.feed(make_group("p", 2, priority=10), *make_gang("p", 2, cpu=1, priority=10)).run(1)
    bench.obey(grace_s=300)
    for version in range(2, 7):
        bench.feed(make_node("n0", cpu=1, version=str(version), labels={"v": str(version)})).run(20)
    assert len(bench.evictions) == 2


@pytest.mark.parametrize("first", ["a-0", "a-1"])
def test_what_is_disrupted_already_uses_up_no_budget_in_any_order_b068(first: str) -> None:
    selector = LabelSelector(match_labels={"app": "a"})
    budget = Budget("default", "keep", selector=selector, allowed=1, disrupted=frozenset({"a-0"}))
    bench = Bench(make_node("n1", cpu=1), make_node("n2", cpu=1), make_node("n3", cpu=1), PdbSeen(budget))
    names = [first, *({"a-0", "a-1"} - {first})]
    for name in names:
        node = {"a-0": "n1", "a-1": "n2"}[name]
        bench.feed(make_pod(name, cpu=1, node=node, priority=1, labels={"app": "a"}))
    bench.feed(make_pod("other", cpu=1, node="n3", priority=2))
    bench.feed(make_group("p", 2, priority=10), *make_gang("p", 2, cpu=1, priority=10)).run(1)
    assert sorted(bench.evictions) == ["a-0", "a-1"]


def test_a_preemptor_that_is_deleted_leaves_no_promise_behind_b071() -> None:
    low = make_pod("low", cpu=4, node="n1", priority=1)
    bench = Bench(make_node("n1", cpu=4), low)
    (p,) = make_gang("p", 1, cpu=4, priority=10)
    bench.feed(make_group("p", 1, priority=10), p).run(1)
    assert bench.evictions == ["low"]
    bench.feed(gone(p), NodeGone("n1"), gone(low), make_node("n1", cpu=4, uid="another"))
    bench.feed(make_group("y", 1, priority=0), *make_gang("y", 1, cpu=4)).run(5)
    assert bench.placed == {"y-0": "n1"}


def test_a_pod_preempted_for_one_is_no_victim_for_the_next_b073() -> None:
    bench = Bench(make_node("n1", cpu=1), make_node("n2", cpu=1))
    for number in range(2):
        bench.feed(make_pod(f"low-{number}", cpu=1, node=f"n{number + 1}", priority=1, version="1"))
    bench.feed(make_group("p", 1, priority=10), *make_gang("p", 1, cpu=1, priority=10)).run(1)
    bench.obey(grace_s=300)
    bench.feed(make_group("q", 1, priority=10), *make_gang("q", 1, cpu=1, priority=10)).run(30)
    assert sorted(bench.evictions) == ["low-0", "low-1"]


@pytest.mark.parametrize(("policy", "evicted"), [("Never", []), (None, ["low"])])
def test_the_policy_of_the_pods_holds_where_groups_have_none_b077(
    policy: str | None, evicted: list[str]
) -> None:
    bench = Bench(make_node("n1", cpu=1), make_pod("low", cpu=1, node="n1", priority=1))
    pods = make_gang("p", 1, cpu=1, priority=10, preemption_policy=policy)
    bench.feed(make_group("p", 1, priority=10), *pods).run(60)
    assert bench.evictions == evicted


@pytest.mark.parametrize("gone_first", [True, False])
def test_a_victim_counts_once_whether_its_end_or_the_answer_comes_first_b146(gone_first: bool) -> None:
    low = make_pod("low", cpu=1, node="n1", priority=1)
    bench = Bench(make_node("n1", cpu=2), low, make_pod("stays", cpu=1, node="n1", priority=20))
    bench.feed(make_group("p", 1, priority=10), *make_gang("p", 1, cpu=1, priority=10)).run(1)
    answer = EvictDone(ObjectKey("default", "low"), "uid-low")
    bench.feed(*([gone(low), answer] if gone_first else [answer, gone(low)])).run(5)
    assert bench.placed == {"p-0": "n1"}
    cpu = bench.scheduler.state.snapshot().requested[0, 0]
    assert cpu == 2000
