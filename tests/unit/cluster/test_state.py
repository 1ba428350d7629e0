"""The cluster state: what counts where, and what changed."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace
from tests.unit.cluster.bound_pods import bound

from muster.api.core import Pod
from muster.api.quantity import INT64_MAX
from muster.cluster.changes import PodChange
from muster.cluster.invariants import check_state
from muster.cluster.state import ClusterState
from muster.testing.builders import GPU, make_node, make_pod

P = ("default", "p")


def cpu_of(state: ClusterState, node: str = "n1") -> int:
    snapshot = state.snapshot()
    return int(snapshot.requested[snapshot.row_of_node[node], 0])


def state_with(*names: str) -> ClusterState:
    state = ClusterState()
    for name in names or ("n1",):
        state.apply_node(make_node(name))
    return state


# ── pods take and free room ──────────────────────────────────────────────────────────────────────


def test_a_bound_pod_takes_room_and_an_unbound_one_does_not() -> None:
    state = state_with()
    change = state.apply_pod(make_pod(cpu=1))
    assert (change.freed, change.assigned, cpu_of(state)) == (False, False, 0)
    change = state.apply_pod(make_pod(cpu=1, node="n1"))
    assert (change.freed, change.assigned, change.node_name, cpu_of(state)) == (False, True, "n1", 1000)


def test_an_ended_pod_frees_its_room() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1"))
    change = state.apply_pod(make_pod(cpu=1, node="n1", phase="Succeeded"))
    assert (change.freed, change.assigned, change.node_name, cpu_of(state)) == (True, False, "n1", 0)
    assert state.node_of(P) is None


def test_a_terminating_pod_takes_room_until_it_is_gone() -> None:
    state = state_with()
    pod = make_pod(cpu=1, node="n1")
    state.apply_pod(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))
    assert cpu_of(state) == 1000
    change = state.remove_pod(P, "uid-p")
    assert change is not None
    assert (change.freed, cpu_of(state), state.pod(P)) == (True, 0, None)


def test_asking_for_less_frees_room() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=2, node="n1"))
    change = state.apply_pod(make_pod(cpu=1, memory="1Gi", node="n1"))
    assert (change.freed, change.assigned, cpu_of(state)) == (True, False, 1000)


def test_a_pod_on_a_node_not_known_yet_counts_once_the_node_appears() -> None:
    state = ClusterState()
    state.apply_pod(make_pod(cpu=1, gpu=2, node="n1"))
    state.apply_node(make_node("n1", gpu=8))
    snapshot = state.snapshot()
    assert snapshot.requested[0].tolist() == [1000, 0, 0, 1, 2]
    assert [pod.metadata.name for pod in snapshot.pods_on(0)] == ["p"]


def test_a_node_that_goes_and_comes_back_finds_its_pods() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1"))
    state.remove_node("n1")
    assert state.snapshot().live_rows().size == 0
    state.apply_node(make_node("other"))
    state.apply_node(make_node("n1"))
    assert (cpu_of(state), cpu_of(state, "other")) == (1000, 0)


def test_a_resource_first_offered_later_counts_what_pods_already_take() -> None:
    state = state_with()
    state.apply_pod(make_pod(gpu=3, node="n1"))
    assert GPU not in state.snapshot().axis
    state.apply_node(make_node("n1", gpu=8))
    assert state.snapshot().free[0].tolist()[-1] == 5


def test_saturated_room_comes_back_exactly() -> None:
    state = state_with()
    state.apply_pod(make_pod("small", memory="1Gi", node="n1"))
    for name in ("a", "b"):
        state.apply_pod(make_pod(name, memory="8Ei", node="n1"))
    assert state.snapshot().requested[0, 1] == INT64_MAX
    for name in ("a", "b"):
        state.remove_pod(("default", name), f"uid-{name}")
    assert state.snapshot().requested[0, 1] == 2**30


# ── identity and age ─────────────────────────────────────────────────────────────────────────────


def test_the_same_name_with_another_uid_is_another_pod() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1", uid="one"))
    change = state.apply_pod(make_pod(cpu=1, uid="two"))
    assert change.old is not None
    assert (change.old.metadata.uid, change.freed, change.assigned, cpu_of(state)) == ("one", True, False, 0)
    assert state.remove_pod(P, "one") is None
    assert state.pod(P) is not None


def test_an_older_version_changes_nothing() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1", version="10"))
    change = state.apply_pod(make_pod(cpu=1, version="9"))
    assert (change.stale, change.freed, cpu_of(state)) == (True, False, 1000)


def test_a_removed_pod_is_not_brought_back_by_a_late_update() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1", version="10"))
    state.remove_pod(P, "uid-p")
    assert state.apply_pod(make_pod(cpu=1, node="n1", version="11")).stale
    assert (cpu_of(state), state.pod(P)) == (0, None)


def test_a_removal_seen_before_the_pod_was_holds_too() -> None:
    state = state_with()
    assert state.remove_pod(P, "uid-p") is None
    assert state.apply_pod(make_pod(node="n1")).stale


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1", version="b"))
    assert not state.apply_pod(make_pod(cpu=2, node="n1", version="a")).stale


def test_an_older_node_changes_nothing_and_a_removed_one_stays_gone() -> None:
    state = ClusterState()
    state.apply_node(make_node(cpu=4, version="10"))
    assert state.apply_node(make_node(cpu=1, version="9")).stale
    assert state.snapshot().allocatable[0, 0] == 4000
    state.remove_node("n1")
    assert state.apply_node(make_node(cpu=4, version="10")).stale
    assert not state.apply_node(make_node(cpu=4, version="11")).stale
    assert not state.apply_node(make_node(cpu=4, uid="new", version="12")).stale


def test_removing_what_is_not_there_is_nothing() -> None:
    state = state_with()
    assert (state.remove_node("none"), state.remove_pod(P, "x")) == (None, None)


# ── assume, confirm, forget ──────────────────────────────────────────────────────────────────────


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    state = state_with()
    pod = make_pod(cpu=1)
    state.apply_pod(pod)
    state.assume(pod, "n1")
    assert (cpu_of(state), state.node_of(P), state.is_assumed(P)) == (1000, "n1", True)
    state.forget(P, "uid-p")
    assert (cpu_of(state), state.node_of(P), state.is_assumed(P)) == (0, None, False)
    assert state.pod(P) == pod


def test_an_update_without_a_node_keeps_the_assumption() -> None:
    state = state_with()
    pod = make_pod(cpu=1)
    state.assume(pod, "n1")
    change = state.apply_pod(make_pod(cpu=1, labels={"a": "b"}))
    assert (change.freed, change.assigned, cpu_of(state), state.is_assumed(P)) == (False, False, 1000, True)
    state.confirm(P, "uid-p")
    state.apply_pod(pod)
    assert cpu_of(state) == 1000


def test_the_watch_shows_the_bind_as_nothing_new() -> None:
    state = state_with()
    state.assume(make_pod(cpu=1), "n1")
    change = state.apply_pod(make_pod(cpu=1, node="n1"))
    assert (change.freed, change.assigned, cpu_of(state), state.is_assumed(P)) == (False, False, 1000, False)


def test_a_row_whose_pod_is_bound_as_assumed_is_not_another_and_shows_the_newer_object_later() -> None:
    state = state_with("n1", "n2")
    pod = make_pod(cpu=1, version="1")
    state.assume(pod, "n1")
    before = state.snapshot()
    now = bound(pod, "n1", "2")
    change = state.apply_pod(now)
    assert state.snapshot() is before
    assert (change.old, change.freed, change.assigned, change.relabeled) == (pod, False, False, False)
    assert (state.is_assumed(P), cpu_of(state), state.pods_on("n1")) == (False, 1000, [now])
    state.apply_pod(make_pod("q", node="n2"))
    after = state.snapshot()
    assert (before.pods_on(0), after.pods_on(0)) == ((pod,), (now,))
    state.remove_pod(P, "uid-p")
    assert (state.snapshot().pods_on(0), cpu_of(state)) == ((), 0)


def test_a_pod_bound_elsewhere_than_assumed_moves() -> None:
    state = state_with("n1", "n2")
    state.assume(make_pod(cpu=1), "n1")
    change = state.apply_pod(make_pod(cpu=1, node="n2"))
    assert (change.freed, change.assigned, change.node_name) == (True, True, "n1")
    assert (cpu_of(state, "n1"), cpu_of(state, "n2")) == (0, 1000)


def test_an_assumed_pod_that_ends_or_goes_frees_its_room() -> None:
    state = state_with()
    state.assume(make_pod("p", cpu=1), "n1")
    state.assume(make_pod("q", cpu=1), "n1")
    assert state.apply_pod(make_pod("p", cpu=1, phase="Failed")).freed
    change = state.remove_pod(("default", "q"), "uid-q")
    assert change is not None
    assert (change.freed, cpu_of(state)) == (True, 0)


@pytest.mark.parametrize("verb", ["confirm", "forget"])
def test_the_outcome_of_another_pods_bind_is_ignored(verb: str) -> None:
    state = state_with()
    state.assume(make_pod(cpu=1), "n1")
    getattr(state, verb)(P, "another")
    getattr(state, verb)(("default", "none"), "uid-p")
    assert (cpu_of(state), state.is_assumed(P)) == (1000, True)


def test_a_confirmed_pod_is_not_forgotten_though_no_watch_shows_it() -> None:
    state = state_with()
    state.assume(make_pod(cpu=1), "n1")
    state.confirm(P, "uid-p")
    state.forget(P, "uid-p")
    assert (cpu_of(state), state.node_of(P)) == (1000, "n1")


def test_forgetting_a_bound_pod_leaves_it_alone() -> None:
    state = state_with()
    state.apply_pod(make_pod(cpu=1, node="n1"))
    state.forget(P, "uid-p")
    assert cpu_of(state) == 1000


def test_assuming_a_bound_pod_is_an_error() -> None:
    state = state_with()
    state.apply_pod(make_pod(node="n1"))
    with pytest.raises(ValueError, match="bound to n1"):
        state.assume(make_pod(), "n2")


def test_assuming_a_pod_of_a_new_uid_drops_the_old() -> None:
    state = state_with()
    state.assume(make_pod(cpu=1, uid="one"), "n1")
    state.assume(make_pod(cpu=2, uid="two"), "n1")
    assert cpu_of(state) == 2000


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        pytest.param({}, (False, False, False), id="nothing"),
        pytest.param({"cpu": 9}, (True, False, False), id="more-cpu"),
        pytest.param({"cpu": 7}, (False, False, False), id="less-cpu"),
        pytest.param({"cpu": 7, "gpu": 1}, (True, False, False), id="a-new-resource"),
        pytest.param({"labels": {"rack": "r1"}}, (False, True, False), id="a-label"),
        pytest.param({"taints": [{"key": "k", "effect": "NoSchedule"}]}, (False, False, True), id="a-taint"),
        pytest.param({"unschedulable": True}, (False, False, True), id="a-cordon"),
    ],
)
def test_a_node_change_says_what_changed(words: dict, changed: tuple[bool, bool, bool]) -> None:  # type: ignore[type-arg]
    state = state_with()
    change = state.apply_node(make_node(**words))
    assert (change.allocatable_grew, change.labels_changed, change.taints_changed) == changed


def test_a_new_node_changes_everything() -> None:
    change = ClusterState().apply_node(make_node())
    assert (change.old, change.allocatable_grew, change.labels_changed, change.taints_changed) == (
        None,
        True,
        True,
        True,
    )


def test_labels_and_taints_of_the_snapshot_follow_the_nodes() -> None:
    state = state_with()
    first = state.snapshot()
    assert first.labels.column("rack").values == ()
    state.apply_node(make_node(labels={"rack": "r1"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    second = state.snapshot()
    assert second.labels.column("rack").values == ("r1",)
    assert [taint.key for taint in second.taints.sets[second.taints.set_of[0]]] == ["k"]
    assert first.labels.column("rack").values == ()


# ── snapshots ────────────────────────────────────────────────────────────────────────────────────


def test_a_snapshot_stays_as_it_was_and_is_shared_until_something_changes() -> None:
    state = state_with()
    state.apply_pod(make_pod("a", cpu=1, node="n1", host_ports=[80]))
    first = state.snapshot()
    assert state.snapshot() is first
    state.apply_pod(make_pod("b", cpu=1, node="n1", host_ports=[81]))
    second = state.snapshot()
    assert (first.requested[0, 0], second.requested[0, 0]) == (1000, 2000)
    assert (len(first.pods_on(0)), len(second.pods_on(0))) == (1, 2)
    assert (len(first.host_ports_on(0)), len(second.host_ports_on(0))) == (1, 2)
    assert second.allocatable is first.allocatable


class StateMachine(RuleBasedStateMachine):
    """Random operations against a dict from pod name to its object and node, nodes coming and going."""

    names = st.sampled_from(["a", "b", "c"])
    nodes = st.sampled_from(["n1", "n2", "n3"])

    @initialize()
    def begin(self) -> None:
        self.state = ClusterState()
        self.version = 0
        self.nodes_up: dict[str, int] = {}
        self.pods: dict[str, tuple[Pod, str]] = {}  # the object as the API has it, and where it counts

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    @rule(name=nodes, cpu=st.integers(1, 4), gpu=st.sampled_from([None, 2]))
    def node_seen(self, name: str, cpu: int, gpu: int | None) -> None:
        self.state.apply_node(make_node(name, cpu=cpu, gpu=gpu, version=self.next_version()))
        self.nodes_up[name] = cpu

    @rule(name=nodes)
    def node_gone(self, name: str) -> None:
        found = self.state.remove_node(name)
        assert (found is not None) == (name in self.nodes_up)
        self.nodes_up.pop(name, None)

    @rule(name=names, cpu=st.integers(0, 3), node=st.one_of(st.just(""), nodes), fresh=st.booleans())
    def pod_seen(self, name: str, cpu: int, node: str, fresh: bool) -> None:
        known = self.pods.get(name)
        version = self.next_version()
        uid = f"{name}-{version}" if fresh or known is None else known[0].metadata.uid
        same = known is not None and known[0].metadata.uid == uid
        pod = make_pod(name, cpu=cpu, gpu=cpu, node=node, uid=uid, version=version)
        change = self.state.apply_pod(pod)
        counts_on = node or (known[1] if same and known is not None and not known[0].spec.node_name else "")
        if same and known is not None and known[0].spec.node_name and not node:
            counts_on = ""  # the API never unbinds; the state just follows
        self.pods[name] = (pod, counts_on)
        assert not change.stale

    @rule(name=names)
    def pod_ends(self, name: str) -> None:
        if name in self.pods:
            pod, _ = self.pods[name]
            ended = replace(
                pod,
                metadata=replace(pod.metadata, resource_version=self.next_version()),
                status=replace(pod.status, phase="Succeeded"),
            )
            self.state.apply_pod(ended)
            self.pods[name] = (ended, "")

    @rule(name=names)
    def pod_gone_and_a_late_update(self, name: str) -> None:
        if name in self.pods:
            pod, counted = self.pods.pop(name)
            change = self.state.remove_pod(("default", name), pod.metadata.uid)
            assert isinstance(change, PodChange)
            assert change.freed == bool(counted)
            assert self.state.apply_pod(pod).stale

    @rule(name=names, node=nodes)
    def assume(self, name: str, node: str) -> None:
        if name in self.pods and not self.pods[name][0].spec.node_name and not self.pods[name][0].is_terminal:
            pod, _ = self.pods[name]
            self.state.assume(pod, node)
            self.pods[name] = (pod, node)

    @rule(name=names)
    def bound_as_assumed(self, name: str) -> None:
        pod, node = self.pods.get(name, (None, ""))
        if pod is not None and node and not pod.spec.node_name:
            now = bound(pod, node, self.next_version())
            self.state.apply_pod(now)
            self.pods[name] = (now, node)

    @rule(name=names)
    def forget(self, name: str) -> None:
        if name in self.pods:
            pod, counted = self.pods[name]
            self.state.forget(("default", name), pod.metadata.uid)
            self.pods[name] = (pod, counted if pod.spec.node_name else "")

    @rule(name=names)
    def late_update(self, name: str) -> None:
        if name in self.pods:
            pod, _ = self.pods[name]
            old = replace(pod, metadata=replace(pod.metadata, resource_version="0"))
            assert self.state.apply_pod(old).stale

    @invariant()
    def counted_as_the_model_says(self) -> None:
        if not hasattr(self, "state"):
            return
        check_state(self.state)
        snapshot = self.state.snapshot()
        assert set(snapshot.row_of_node) == set(self.nodes_up)
        for name, row in snapshot.row_of_node.items():
            here = [pod for pod, node in self.pods.values() if node == name]
            asked = [
                int((p.spec.containers[0].resources.requests or {})["cpu"])
                for p in here
                if p.spec.containers[0].resources
            ]
            assert snapshot.requested[row, 0] == 1000 * sum(asked)
            assert snapshot.requested[row, 3] == len(here)
        for name, (_, node) in self.pods.items():
            assert self.state.node_of(("default", name)) == (node or None)


TestStateMachine = StateMachine.TestCase
TestStateMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def test_label_keys_that_rules_read_are_known_from_waiting_pods_on_and_until_they_go() -> None:
    state = ClusterState()
    selector = {"matchLabels": {"app": "x"}}
    constraint = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector}
    for name in ("a", "b"):
        state.apply_pod(make_pod(name, topology_spread_constraints=[constraint]))
    assert state.snapshot().label_keys_read == {"app"}
    state.remove_pod(("default", "a"), "uid-a")
    assert state.label_keys_read == {"app"}
    state.remove_pod(("default", "b"), "uid-b")
    assert state.snapshot().label_keys_read == frozenset()


def test_a_snapshot_knows_whether_some_placed_pod_has_rules() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1"))
    state.apply_pod(make_pod("a", affinity=APART))
    assert not state.snapshot().have_rules
    state.assume(make_pod("a", affinity=APART), "n1")
    assert state.snapshot().have_rules
    state.forget(("default", "a"), "uid-a")
    assert not state.snapshot().have_rules


def test_labels_of_namespaces_are_those_at_the_time_of_the_snapshot() -> None:
    state = ClusterState()
    assert state.apply_namespace("a", {"team": "x"})
    before = state.snapshot()
    assert not state.apply_namespace("a", {"team": "x"})
    assert state.apply_namespace("a", {"team": "y"})
    assert (before.namespaces, state.snapshot().namespaces) == ({"a": {"team": "x"}}, {"a": {"team": "y"}})
    state.remove_namespace("a")
    assert state.snapshot().namespaces == {}


def test_a_placed_pod_that_is_relabeled_or_going_is_told_as_such() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1"))
    pod = make_pod("a", node="n1", labels={"app": "x"})
    assert not state.apply_pod(pod).relabeled
    assert not state.apply_pod(pod).relabeled
    other = replace(pod, metadata=replace(pod.metadata, labels={"app": "y"}))
    assert state.apply_pod(other).relabeled
    going = replace(other, metadata=replace(other.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    assert state.apply_pod(going).relabeled


def test_many_nodes_and_pods_agree_with_their_parts() -> None:
    rng = np.random.default_rng(7)
    state = ClusterState()
    for index in range(100):
        state.apply_node(make_node(f"n{index}", gpu=8))
    for index in range(500):
        state.apply_pod(make_pod(f"p{index}", cpu=1, gpu=1, node=f"n{rng.integers(100)}"))
    check_state(state)
