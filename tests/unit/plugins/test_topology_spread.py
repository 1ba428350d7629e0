"""PodTopologySpread, against the slow and obvious version of itself."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plugins.random_rules import HOST, ZONE, as_going, clusters, move_something, pods

from muster.api.core import Pod, TopologySpreadConstraint
from muster.api.selectors import find_untolerated, matches_selector
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.placement.neighbours import Even
from muster.plugins.topology_spread import PodTopologySpread
from muster.testing.builders import make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin

SKEW = "node(s) didn't match pod topology spread constraints"
LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


# ── the slow version ─────────────────────────────────────────────────────────────────────────────


def of_kind(pod: Pod, kind: str) -> list[TopologySpreadConstraint]:
    return [c for c in pod.spec.topology_spread_constraints or [] if c.when_unsatisfiable == kind]


def selects(constraint: TopologySpreadConstraint, owner: Pod, other: Pod) -> bool:
    mine, theirs = owner.metadata.labels or {}, other.metadata.labels or {}
    same = all(theirs.get(key) == mine[key] for key in constraint.match_label_keys or [] if key in mine)
    return same and matches_selector(constraint.label_selector, theirs)


def labels_at(snapshot: Snapshot, row: int) -> dict[str, str]:
    node = snapshot.nodes[row]
    assert node is not None
    return node.metadata.labels or {}


def row_counts(snapshot: Snapshot, pod: Pod, constraint: TopologySpreadConstraint, row: int) -> bool:
    node, labels = snapshot.nodes[row], labels_at(snapshot, row)
    assert node is not None
    if not all(c.topology_key in labels for c in of_kind(pod, constraint.when_unsatisfiable)):
        return False
    wanted = pod.spec.node_selector or {}
    if constraint.node_affinity_policy != "Ignore" and any(labels.get(k) != v for k, v in wanted.items()):
        return False
    taint = find_untolerated(node.spec.taints or (), pod.spec.tolerations or (), ("NoSchedule", "NoExecute"))
    return constraint.node_taints_policy != "Honor" or taint is None


def pods_by_domain(snapshot: Snapshot, pod: Pod, constraint: TopologySpreadConstraint) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in snapshot.live_rows().tolist():
        if row_counts(snapshot, pod, constraint, row):
            found[labels_at(snapshot, row)[constraint.topology_key]] += sum(
                other.metadata.namespace == pod.metadata.namespace
                and not other.is_terminating
                and selects(constraint, pod, other)
                for other in snapshot.pods_on(row)
            )
    return found


def slow_reason(pod: Pod, snapshot: Snapshot, row: int) -> str:
    for constraint in of_kind(pod, "DoNotSchedule"):
        value = labels_at(snapshot, row).get(constraint.topology_key)
        if value is None:
            return LABEL
        counts = pods_by_domain(snapshot, pod, constraint)
        fewest = min(counts.values()) if len(counts) >= (constraint.min_domains or 1) else 0
        if counts[value] + selects(constraint, pod, pod) - fewest > constraint.max_skew:
            return SKEW
    return ""


def slow_score(pod: Pod, snapshot: Snapshot, row: int) -> float:
    parts = []
    for constraint in of_kind(pod, "ScheduleAnyway"):
        value = labels_at(snapshot, row).get(constraint.topology_key)
        counts = pods_by_domain(snapshot, pod, constraint)
        above = 0 if value is None else max(0, counts[value] - min(counts.values(), default=0))
        parts.append(0.0 if value is None else 100.0 / (1 + above / constraint.max_skew))
    return sum(parts) / len(parts) if parts else 0.0


def fast_reasons(pod: Pod, snapshot: Snapshot) -> list[str]:
    rows = snapshot.live_rows()
    verdict = PodTopologySpread().filter(pod, snapshot, rows)
    texts = [""] * len(rows)
    for reason in verdict.reasons:
        for index in np.flatnonzero(reason.rejected).tolist():
            assert not texts[index], "one reason for a row"
            texts[index] = reason.text
    assert [not text for text in texts] == verdict.feasible.tolist()
    return texts


def check_against_the_slow_version(pod: Pod, snapshot: Snapshot) -> None:
    rows = snapshot.live_rows()
    assert fast_reasons(pod, snapshot) == [slow_reason(pod, snapshot, row) for row in rows.tolist()]
    score = PodTopologySpread().score(pod, snapshot, rows)
    assert np.allclose(score, [slow_score(pod, snapshot, row) for row in rows.tolist()])


@given(state=clusters(), pod=pods(spread=True), data=st.data())
def test_it_answers_as_the_slow_version_does(state: ClusterState, pod: Pod, data: st.DataObject) -> None:
    snapshot = state.snapshot()
    check_against_the_slow_version(pod, snapshot)
    fork = snapshot.fork()
    for index in range(data.draw(st.integers(0, 4))):
        if data.draw(st.booleans()):
            fork = fork.fork()
        move_something(data.draw, fork, data.draw(pods(f"member-{index}")))
        if data.draw(st.booleans()):
            check_against_the_slow_version(pod, fork)
    check_against_the_slow_version(pod, fork)
    check_against_the_slow_version(pod, snapshot)


@given(state=clusters(), pod=pods(spread=True), data=st.data())
def test_rows_that_are_not_named_answer_as_before(state: ClusterState, pod: Pod, data: st.DataObject) -> None:
    """After several placements, as the assigner asks: mask and score of all other rows are what they were."""
    plugin, fork = PodTopologySpread(), state.snapshot().fork()
    rows = fork.live_rows()
    before = plugin.filter(pod, fork, rows).feasible, plugin.score(pod, fork, rows)
    news = []
    for index in range(data.draw(st.integers(1, 4)) if rows.size else 0):
        member = data.draw(st.one_of(pods(f"member-{index}"), st.builds(replace, st.just(pod))))
        row = data.draw(st.sampled_from(rows.tolist()))
        fork.place(member, row)
        news.append((member, row))
    named = [plugin.rows_changed(member, row, pod, fork) for member, row in news]
    if any(changed is None for changed in named):
        return
    others = ~np.isin(rows, np.concatenate([np.empty(0, np.int32), *(c for c in named if c is not None)]))
    assert np.array_equal(plugin.filter(pod, fork, rows).feasible[others], before[0][others])
    assert np.array_equal(plugin.score(pod, fork, rows)[others], before[1][others])


@given(pod=pods(spread=True))
def test_it_keeps_the_contract(pod: Pod) -> None:
    check_plugin(PodTopologySpread(), pods=[pod])


# ── by example ───────────────────────────────────────────────────────────────────────────────────


def spread(key: str = ZONE, max_skew: int = 1, **fields: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "x"}}
    hard = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"maxSkew": max_skew, "topologyKey": key, **hard, **fields}


def member(name: str = "p", *constraints: dict[str, Any], **words: Any) -> Pod:
    words.setdefault("labels", {"app": "x"})
    return make_pod(name, topology_spread_constraints=list(constraints) or [spread()], **words)


def two_zones() -> Snapshot:
    cluster = make_cluster().node(labels={ZONE: "a"}).node(labels={ZONE: "a"}).node(labels={ZONE: "b"}).node()
    return cluster.running("old", "n1", labels={"app": "x"}).snapshot()


def test_a_pod_goes_to_the_emptier_zone_and_not_where_the_label_is_missing() -> None:
    assert fast_reasons(member(), two_zones()) == [SKEW, SKEW, "", LABEL]


def test_with_too_few_domains_the_emptiest_counts_as_empty() -> None:
    assert fast_reasons(member("p", spread(max_skew=2, minDomains=2)), two_zones())[:3] == ["", "", ""]
    assert fast_reasons(member("p", spread(max_skew=1, minDomains=3)), two_zones())[:3] == [SKEW, SKEW, ""]


def test_a_pod_that_is_going_does_not_count() -> None:
    cluster = make_cluster().node(labels={ZONE: "a"}).node(labels={ZONE: "b"})
    cluster.state.apply_pod(as_going(make_pod("old", node="n1", labels={"app": "x"})))
    assert fast_reasons(member(), cluster.snapshot()) == ["", ""]


def test_only_the_domain_is_asked_again_until_the_emptiest_fills() -> None:
    snapshot = two_zones()
    fork, plugin = snapshot.fork(), PodTopologySpread()
    one, two, three = (member(f"g-{index}", spread(max_skew=3)) for index in range(3))
    fork.place(one, 0)
    changed = plugin.rows_changed(one, 0, two, fork)
    assert changed is not None
    assert changed.tolist() == [0, 1]
    fork.place(two, 2)
    assert plugin.rows_changed(two, 2, three, fork) is None


def test_a_pod_without_constraints_is_asked_nothing() -> None:
    snapshot = two_zones()
    changed = PodTopologySpread().rows_changed(make_pod("a"), 0, make_pod("b"), snapshot)
    assert changed is not None
    assert changed.size == 0
    assert fast_reasons(make_pod("b"), snapshot) == [""] * 4
    assert not snapshot._pods.table.active


@pytest.mark.parametrize(
    ("other", "hint"),
    [
        pytest.param(make_pod("o", labels={"app": "x"}), Hint.QUEUE, id="counted"),
        pytest.param(make_pod("o", labels={"app": "y"}), Hint.SKIP, id="other-labels"),
        pytest.param(make_pod("o", namespace="other", labels={"app": "x"}), Hint.SKIP, id="other-namespace"),
    ],
)
@pytest.mark.parametrize("change", [Change.POD_ASSIGNED, Change.POD_FREED])
def test_pods_that_count_wake(change: Change, other: Pod, hint: Hint) -> None:
    helps = next(rule.helps for rule in PodTopologySpread().hint_rules() if rule.change is change)
    assert helps is not None
    assert helps(Rejected(None, None, (member(),)), ClusterEvent(change, pod=other)) is hint


def test_nodes_that_count_wake_and_taints_only_those_who_heed_them() -> None:
    rules = {rule.change: rule.helps for rule in PodTopologySpread().hint_rules()}
    added, tainted = rules[Change.NODE_ADDED], rules[Change.NODE_TAINTS_CHANGED]
    assert added is not None
    assert tainted is not None
    rejected = Rejected(None, None, (member(),))
    for node, hint in ((make_node("a"), Hint.SKIP), (make_node("b", labels={ZONE: "x"}), Hint.QUEUE)):
        assert added(rejected, ClusterEvent(Change.NODE_ADDED, node=node)) is hint
    assert tainted(rejected, ClusterEvent(Change.NODE_TAINTS_CHANGED)) is Hint.SKIP
    heeding = Rejected(None, None, (member("p", spread(nodeTaintsPolicy="Honor")),))
    assert tainted(heeding, ClusterEvent(Change.NODE_TAINTS_CHANGED)) is Hint.QUEUE


def test_constraints_are_stated_to_the_exact_search_one_rule_for_all_that_say_the_same() -> None:
    snapshot = two_zones()
    pods = [member("p"), member("q"), make_pod("r")]
    packing = PodTopologySpread().packing(pods, snapshot, snapshot.live_rows())
    assert packing is not None
    assert packing.feasible.tolist() == [[True, True, True, False]] * 2 + [[True] * 4]
    (rule,) = packing.rules
    assert isinstance(rule, Even)
    assert rule.domain.tolist() == [0, 0, 1, -1]
    assert rule.carries.tolist() == rule.counts.tolist() == [True, True, False]
    assert (rule.before.tolist(), rule.max_skew, rule.is_short) == ([1, 0], 1, False)


def test_a_constraint_that_does_not_take_its_own_pod_is_not_stated() -> None:
    snapshot = two_zones()
    pod = member("p", labels={"app": "other"})
    assert PodTopologySpread().packing([pod], snapshot, snapshot.live_rows()) is None


def test_a_preferred_spread_scores_the_emptiest_domain_best() -> None:
    soft = spread(whenUnsatisfiable="ScheduleAnyway")
    snapshot = two_zones()
    score = PodTopologySpread().score(member("p", soft), snapshot, snapshot.live_rows())
    assert score.tolist() == [50.0, 50.0, 100.0, 0.0]
    both = member("p", soft, spread(HOST, whenUnsatisfiable="ScheduleAnyway"))
    score = PodTopologySpread().score(both, snapshot, snapshot.live_rows())
    assert score.tolist() == [50.0, 75.0, 100.0, 50.0]


@pytest.mark.parametrize(
    ("constraint", "shown"),
    [
        pytest.param({}, "zone=a would have 3 such pods, the emptiest has 1, maxSkew is 1", id="skew"),
        pytest.param(
            {"minDomains": 3},
            "zone=a would have 3 such pods, "
            "0 counts as the fewest, as there are 2 of minDomains 3, maxSkew is 1",
            id="too-few-domains",
        ),
        pytest.param({"topologyKey": "row"}, "has no label row", id="no-label"),
    ],
)
def test_the_example_names_domain_counts_and_bound(constraint: dict[str, Any], shown: str) -> None:
    labels = {"app": "web"}
    cluster = make_cluster().node(labels={"zone": "a"}).node(labels={"zone": "b"})
    for name, node in (("x", "n1"), ("y", "n1"), ("z", "n2")):
        cluster.running(name, node, labels=labels)
    whole = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
        **constraint,
    }
    pod = make_pod(labels=labels, topology_spread_constraints=[whole])
    assert PodTopologySpread().example(pod, cluster.snapshot(), 0, "any") == shown
