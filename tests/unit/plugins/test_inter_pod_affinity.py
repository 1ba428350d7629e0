"""InterPodAffinity, against the slow and obvious version of itself."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.plugins.random_rules import (
    HOST,
    PREFERRED,
    REQUIRED,
    ZONE,
    affinities,
    clusters,
    labels,
    move_something,
    pods,
)

from muster.api.core import Pod, PodAffinity, PodAffinityTerm
from muster.api.selectors import matches_selector
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.framework.runner import Runner, Weighted
from muster.placement.neighbours import Apart, Near
from muster.plugins.inter_pod_affinity import InterPodAffinity
from muster.plugins.priority_sort import PrioritySort
from muster.testing.builders import make_cluster, make_gang, make_node, make_pod
from muster.testing.conformance import check_plugin

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


# ── the slow version ─────────────────────────────────────────────────────────────────────────────


def required(rule: PodAffinity | None) -> list[PodAffinityTerm]:
    return (rule.required or []) if rule is not None else []


def preferred(pod: Pod) -> Iterator[tuple[int, PodAffinityTerm]]:
    affinity = pod.spec.affinity
    for rule, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)) if affinity else ():
        for weighted in (rule.preferred or []) if rule is not None else []:
            assert weighted.pod_affinity_term is not None
            yield sign * weighted.weight, weighted.pod_affinity_term


def near_terms(pod: Pod) -> list[PodAffinityTerm]:
    return required(pod.spec.affinity.pod_affinity) if pod.spec.affinity else []


def apart_terms(pod: Pod) -> list[PodAffinityTerm]:
    return required(pod.spec.affinity.pod_anti_affinity) if pod.spec.affinity else []


def is_about(term: PodAffinityTerm, owner: Pod, other: Pod, snapshot: Snapshot) -> bool:
    names = term.namespaces or []
    if not names and term.namespace_selector is None:
        names = [owner.metadata.namespace]
    space = snapshot.namespaces.get(other.metadata.namespace)
    if other.metadata.namespace not in names and not matches_selector(term.namespace_selector, space):
        return False
    mine, theirs = owner.metadata.labels or {}, other.metadata.labels or {}
    if term.label_selector is None:
        return False
    same = all(theirs.get(key) == mine[key] for key in term.match_label_keys or [] if key in mine)
    unlike = all(theirs.get(key) != mine[key] for key in term.mismatch_label_keys or [] if key in mine)
    return same and unlike and matches_selector(term.label_selector, theirs)


def value_at(snapshot: Snapshot, row: int, key: str) -> str | None:
    node = snapshot.nodes[row]
    return None if node is None else (node.metadata.labels or {}).get(key)


def placed(snapshot: Snapshot) -> list[tuple[Pod, int]]:
    return [(pod, row) for row in snapshot.live_rows().tolist() for pod in snapshot.pods_on(row)]


def shares(snapshot: Snapshot, row: int, other: int, key: str) -> bool:
    value = value_at(snapshot, row, key)
    return value is not None and value == value_at(snapshot, other, key)


def slow_reason(pod: Pod, snapshot: Snapshot, row: int) -> str:
    """Why not on this row, "" if it may go there."""
    near = near_terms(pod)
    everybody = placed(snapshot)
    meets = [
        (other, at)
        for other, at in everybody
        if near and all(is_about(t, pod, other, snapshot) for t in near)
    ]
    counted = [at for _, at in meets if any(value_at(snapshot, at, t.topology_key) is not None for t in near)]
    is_first = not counted and all(is_about(term, pod, pod, snapshot) for term in near)
    for term in near:
        if value_at(snapshot, row, term.topology_key) is None:
            return AFFINITY
        if not is_first and not any(shares(snapshot, row, at, term.topology_key) for _, at in meets):
            return AFFINITY
    for other, at in everybody:
        for term in apart_terms(pod):
            if is_about(term, pod, other, snapshot) and shares(snapshot, row, at, term.topology_key):
                return ANTI_AFFINITY
    for other, at in everybody:
        for term in apart_terms(other):
            if is_about(term, other, pod, snapshot) and shares(snapshot, row, at, term.topology_key):
                return EXISTING
    return ""


def slow_drawn(pod: Pod, snapshot: Snapshot, row: int) -> int:
    """All preferences that speak for this row, those against it taken off."""
    drawn = 0
    for other, at in placed(snapshot):
        for weight, term in preferred(pod):
            drawn += weight * (
                is_about(term, pod, other, snapshot) and shares(snapshot, row, at, term.topology_key)
            )
        for weight, term in [*preferred(other), *((1, term) for term in near_terms(other))]:
            drawn += weight * (
                is_about(term, other, pod, snapshot) and shares(snapshot, row, at, term.topology_key)
            )
    return drawn


def fast_reasons(pod: Pod, snapshot: Snapshot) -> list[str]:
    rows = snapshot.live_rows()
    verdict = InterPodAffinity().filter(pod, snapshot, rows)
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
    score = InterPodAffinity().score(pod, snapshot, rows)
    drawn = [slow_drawn(pod, snapshot, row) for row in rows.tolist()]
    for i, one in enumerate(drawn):
        assert (score[i] > 50) == (one > 0)
        assert (score[i] < 50) == (one < 0)
        for j, other in enumerate(drawn):
            assert (score[i] > score[j]) == (one > other)


@given(state=clusters(), pod=pods(), data=st.data())
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


@given(state=clusters(), pod=pods(), data=st.data())
def test_rows_that_are_not_named_answer_as_before(state: ClusterState, pod: Pod, data: st.DataObject) -> None:
    """After several placements, as the assigner asks: mask and score of all other rows are what they were."""
    plugin, fork = InterPodAffinity(), state.snapshot().fork()
    rows = fork.live_rows()
    if data.draw(st.booleans()):
        move_something(data.draw, fork, data.draw(pods("earlier")))
    before = plugin.filter(pod, fork, rows).feasible, plugin.score(pod, fork, rows)
    news = []
    for index in range(data.draw(st.integers(1, 3)) if rows.size else 0):
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


@given(affinity=affinities(), labels_=labels)
def test_it_keeps_the_contract(affinity: dict[str, Any], labels_: dict[str, str]) -> None:
    check_plugin(InterPodAffinity(), pods=[make_pod("p", labels=labels_, affinity=affinity)])


# ── by example ───────────────────────────────────────────────────────────────────────────────────


def term(key: str = HOST, app: str = "x", **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def test_a_pod_without_rules_costs_no_table_in_a_cluster_without_any() -> None:
    cluster = make_cluster().nodes(2).running("old", "n1", labels={"app": "x"})
    snapshot = cluster.snapshot()
    assert fast_reasons(make_pod(labels={"app": "x"}), snapshot) == ["", ""]
    assert not snapshot._pods.table.active


def test_the_rule_of_a_running_pod_of_another_scheduler_is_kept() -> None:
    cluster = make_cluster().nodes(2).running("old", "n1", scheduler="other", affinity=apart(term()))
    assert fast_reasons(make_pod(labels={"app": "x"}), cluster.snapshot()) == [EXISTING, ""]


def test_the_first_pod_may_be_alone_and_the_second_joins_it() -> None:
    snapshot = make_cluster().node(labels={ZONE: "a"}).node(labels={ZONE: "b"}).node().snapshot()
    first, second = make_gang("g", 2, labels={"app": "x"}, affinity=near(term(ZONE)))
    assert fast_reasons(first, snapshot) == ["", "", AFFINITY]
    fork = snapshot.fork()
    fork.place(first, 1)
    assert fast_reasons(second, fork) == [AFFINITY, "", AFFINITY]
    assert InterPodAffinity().rows_changed(first, 1, second, fork) is None
    fork.place(second, 1)
    changed = InterPodAffinity().rows_changed(second, 1, second, fork)
    assert changed is not None
    assert changed.tolist() == [1]


def test_nodes_count_as_usable_though_nobody_wanted_near_is_there_yet() -> None:
    """The nearest fit must not say that no node passes the rules: pods come and go."""
    snapshot = make_cluster().nodes(2).snapshot()
    runner = Runner([Weighted(PrioritySort()), Weighted(InterPodAffinity())])
    assert runner.usable(make_pod(affinity=near(term())), snapshot).tolist() == [True, True]


def test_members_that_differ_in_a_label_no_rule_reads_share_one_count() -> None:
    snapshot = make_cluster().nodes(2).snapshot()
    fork = snapshot.fork()
    for index in range(2):
        pod = make_pod(f"g-{index}", labels={"app": "x", "index": str(index)}, affinity=apart(term()))
        InterPodAffinity().filter(pod, fork, fork.live_rows())
    assert len(snapshot._memo) == 1


@pytest.mark.parametrize(
    ("event_pod", "change", "hint"),
    [
        pytest.param(make_pod(labels={"app": "x"}), Change.POD_FREED, Hint.QUEUE, id="it-kept-us-away"),
        pytest.param(make_pod(labels={"app": "y"}), Change.POD_FREED, Hint.SKIP, id="it-did-not"),
        pytest.param(
            make_pod(affinity=apart(term(app="me"))), Change.POD_FREED, Hint.QUEUE, id="its-own-rule"
        ),
        pytest.param(make_pod(labels={"app": "z"}), Change.POD_ASSIGNED, Hint.QUEUE, id="wanted-near"),
        pytest.param(make_pod(labels={"app": "x"}), Change.POD_ASSIGNED, Hint.SKIP, id="not-wanted"),
    ],
)
def test_who_wakes(event_pod: Pod, change: Change, hint: Hint) -> None:
    waiting = make_pod(labels={"app": "me"}, affinity={**apart(term()), **near(term(app="z"))})
    helps = next(rule.helps for rule in InterPodAffinity().hint_rules() if rule.change is change)
    assert helps is not None
    assert helps(Rejected(None, None, (waiting,)), ClusterEvent(change, pod=event_pod)) is hint


def test_a_namespace_selector_in_doubt_wakes() -> None:
    waiting = make_pod(affinity=near(term(namespaceSelector={"matchLabels": {"team": "a"}})))
    helps = next(rule.helps for rule in InterPodAffinity().hint_rules() if rule.change is Change.POD_ASSIGNED)
    assert helps is not None
    event = ClusterEvent(Change.POD_ASSIGNED, pod=make_pod("other", namespace="elsewhere"))
    assert helps(Rejected(None, None, (waiting,)), event) is Hint.QUEUE


def test_a_node_without_the_label_does_not_wake_who_must_be_near() -> None:
    helps = next(rule.helps for rule in InterPodAffinity().hint_rules() if rule.change is Change.NODE_ADDED)
    assert helps is not None
    rejected = Rejected(None, None, (make_pod(affinity=near(term(ZONE))),))
    for node, hint in ((make_node("a"), Hint.SKIP), (make_node("b", labels={ZONE: "x"}), Hint.QUEUE)):
        assert helps(rejected, ClusterEvent(Change.NODE_ADDED, node=node)) is hint


def test_members_that_keep_away_from_each_other_on_nodes_exclude_each_other() -> None:
    snapshot = make_cluster().nodes(2).snapshot()
    pods = [make_pod("a", labels={"app": "x"}), make_pod("b", affinity=apart(term(HOST)))]
    packing = InterPodAffinity().packing(pods, snapshot, snapshot.live_rows())
    assert packing is not None
    assert packing.conflict.tolist() == [[False, True], [True, False]]


def test_members_that_keep_away_from_each_other_in_a_zone_do_so_in_the_whole_zone() -> None:
    snapshot = make_cluster().nodes(2, labels={ZONE: "z"}).node().snapshot()
    pods = [make_pod("a", labels={"app": "x"}), make_pod("b", affinity=apart(term(ZONE)))]
    packing = InterPodAffinity().packing(pods, snapshot, snapshot.live_rows())
    assert packing is not None
    assert not packing.conflict.any()
    (rule,) = packing.rules
    assert isinstance(rule, Apart)
    assert rule.domain.tolist() == [0, 0, -1]
    assert rule.conflict.tolist() == [[False, True], [True, False]]


def test_who_needs_whom_is_stated_and_only_where_the_label_is() -> None:
    cluster = make_cluster().nodes(1, labels={ZONE: "y"}).nodes(1, labels={ZONE: "z"}).node()
    snapshot = cluster.running("old", "n1", labels={"app": "x"}).snapshot()
    pods = [make_pod("a", labels={"app": "x"}), make_pod("b", affinity=near(term(ZONE)))]
    packing = InterPodAffinity().packing(pods, snapshot, snapshot.live_rows())
    assert packing is not None
    assert packing.feasible.tolist() == [[True, True, True], [True, True, False]]
    (rule,) = packing.rules
    assert isinstance(rule, Near)
    assert (rule.needs.tolist(), rule.helps.tolist()) == ([False, True], [True, False])
    assert sorted(rule.is_helped.tolist()) == [False, False, True]
    assert not rule.may_begin


def test_one_preferred_pod_of_the_heaviest_weight_scores_90_and_one_to_avoid_10() -> None:
    cluster = (
        make_cluster()
        .nodes(3)
        .running("x", "n1", labels={"app": "x"})
        .running("y", "n2", labels={"app": "y"})
    )
    affinity = {
        "podAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": term()}]},
        "podAntiAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": term(app="y")}]},
    }
    snapshot = cluster.snapshot()
    score = InterPodAffinity().score(make_pod(affinity=affinity), snapshot, snapshot.live_rows())
    assert score.tolist() == [90.0, 10.0, 50.0]


def term_about(app: str, key: str = "zone") -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


@pytest.mark.parametrize(
    ("affinity", "text", "shown"),
    [
        pytest.param(
            {"podAffinity": {REQUIRED: [term_about("db")]}},
            AFFINITY,
            "no pod with app=db in zone=a",
            id="near",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [term_about("db", "row")]}},
            AFFINITY,
            "has no label row",
            id="no-label",
        ),
        pytest.param(
            {"podAntiAffinity": {REQUIRED: [term_about("web")]}},
            ANTI_AFFINITY,
            "pod default/web-0 in zone=a must be kept away from",
            id="apart",
        ),
        pytest.param(None, EXISTING, "pod default/shy in zone=a keeps such pods away", id="against"),
    ],
)
def test_the_example_names_the_pod_that_is_in_the_way(affinity: Any, text: str, shown: str) -> None:
    cluster = make_cluster().node(labels={"zone": "a"}).node(labels={"zone": "a"})
    cluster.running("web-1", "n2", labels={"app": "web"}).running("web-0", "n1", labels={"app": "web"})
    cluster.running("shy", "n2", affinity={"podAntiAffinity": {REQUIRED: [term_about("p")]}})
    pod = make_pod(labels={"app": "p"}, affinity=affinity)
    assert InterPodAffinity().example(pod, cluster.snapshot(), 1, text) == shown
