"""Workload and PodGroup of a Job: names, contents, adoption, and following the minCount."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.controllers.small_cluster import SmallCluster, names

from muster.assembly.embedded import EmbeddedCluster
from muster.controllers.job import Jobs
from muster.controllers.job_groups import group_name, tail, template_name, workload_name
from muster.controllers.ports import JOBS, POD_GROUPS, PODS, WORKLOADS, Object

VECTORS = [
    ("jg", "69ba0483-a409-4992-9345-00514ad38da9", "jg-559c79c59f", "jg-559c79c59f-jg-pgt-0-6f9cdb655b"),
    ("jb", "93f5dac8-0caa-4419-9964-e5dffdfabbdd", "jb-6c5ffdfdc8", "jb-6c5ffdfdc8-jb-pgt-0-cd4d5fbf6"),
]
API = "scheduling.k8s.io/v1beta1"
PARENT = {
    "apiVersion": "jobset.example.com/v1",
    "kind": "JobSet",
    "name": "js",
    "uid": "u",
    "controller": True,
}


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(Jobs())


def add_job(cluster: SmallCluster, name: str = "j", *, meta: Object | None = None, **spec: Any) -> Object:
    gang = {"schedulingPolicy": {"gang": {}}}
    pod = {"containers": [{"name": "c", "image": "i"}], **spec.pop("pod", {})}
    base = {"parallelism": 4, "completions": 4, "scheduling": gang, "template": {"spec": pod}}
    return cluster.create(JOBS, name, meta=meta, spec={**base, **spec})


def only_workload(cluster: SmallCluster) -> Object:
    (workload,) = cluster.all(WORKLOADS)
    return workload


def only_group(cluster: SmallCluster) -> Object:
    (group,) = cluster.all(POD_GROUPS)
    return group


def min_counts(cluster: SmallCluster) -> tuple[int, int]:
    (template,) = only_workload(cluster)["spec"]["podGroupTemplates"]
    group = only_group(cluster)["spec"]["schedulingPolicy"]["gang"]["minCount"]
    return template["schedulingPolicy"]["gang"]["minCount"], group


def groups_of_pods(cluster: SmallCluster) -> set[str | None]:
    return {pod["spec"].get("schedulingGroup", {}).get("podGroupName") for pod in cluster.all(PODS)}


def job_object(name: str, uid: str) -> Object:
    return {"metadata": {"name": name, "uid": uid}}


@pytest.mark.parametrize(("name", "uid", "workload", "group"), VECTORS)
def test_names_are_those_seen_on_stock(name: str, uid: str, workload: str, group: str) -> None:
    job = job_object(name, uid)
    assert workload_name(job) == workload
    assert group_name(workload, template_name(job)) == group


def test_the_tail_of_the_empty_text_is_the_offset_basis() -> None:
    assert tail("") == "".join("456789bcdf"[int(digit)] for digit in str(0x811C9DC5))


@pytest.mark.parametrize(
    ("job", "template"),
    [
        pytest.param("j", "j-pgt-0", id="as-stock"),
        pytest.param("j" * 57, "j" * 57 + "-pgt-0", id="the-longest-that-fits"),
        pytest.param("j" * 58, "pgt-0", id="one-too-long"),
        pytest.param("j.1", "pgt-0", id="with-a-dot"),
    ],
)
def test_a_template_has_a_name_that_the_api_takes(job: str, template: str) -> None:
    assert template_name(job_object(job, "u")) == template


def test_a_gang_job_gets_workload_group_and_pods_in_it(cluster: SmallCluster) -> None:
    job = add_job(cluster)
    workload, group = only_workload(cluster), only_group(cluster)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "j",
        "uid": job["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert workload["metadata"]["name"] == workload_name(job)
    assert workload["metadata"]["ownerReferences"] == [owner]
    assert workload["spec"] == {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
        "podGroupTemplates": [{"name": "j-pgt-0", "schedulingPolicy": {"gang": {"minCount": 4}}}],
    }
    beside = {
        "apiVersion": API,
        "kind": "Workload",
        "name": workload["metadata"]["name"],
        "uid": workload["metadata"]["uid"],
    }
    assert group["metadata"]["ownerReferences"] == [owner, beside]
    assert group["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 4}},
        "workloadRef": {"workloadName": workload["metadata"]["name"], "templateName": "j-pgt-0"},
    }
    assert len(cluster.all(PODS)) == 4
    assert groups_of_pods(cluster) == {group["metadata"]["name"]}
    assert cluster.events()[:2] == [
        ("Normal", "WorkloadCreated", f"Created Workload {workload['metadata']['name']} for Job j"),
        ("Normal", "PodGroupCreated", f"Created PodGroup {group['metadata']['name']} for Job j"),
    ]
    assert cluster.get(JOBS, "j")["spec"] == job["spec"]


@pytest.mark.parametrize(
    "scheduling",
    [
        pytest.param(None, id="nothing-said"),
        pytest.param({"disruptionMode": {"single": {}}}, id="no-policy-said"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, id="basic-said"),
    ],
)
def test_without_a_gang_the_group_is_basic(cluster: SmallCluster, scheduling: Object | None) -> None:
    add_job(cluster, scheduling=scheduling)
    assert only_group(cluster)["spec"]["schedulingPolicy"] == {"basic": {}}
    assert groups_of_pods(cluster) == {only_group(cluster)["metadata"]["name"]}


def test_what_the_job_says_is_copied_and_the_class_of_its_pods(cluster: SmallCluster) -> None:
    scheduling = {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "resourceClaims": [{"name": "r", "resourceClaimName": "c"}],
    }
    add_job(cluster, scheduling=scheduling, pod={"priorityClassName": "hi"})
    (template,) = only_workload(cluster)["spec"]["podGroupTemplates"]
    wanted = {**scheduling, "priorityClassName": "hi"}
    assert template == {"name": "j-pgt-0", **wanted}
    assert {field: only_group(cluster)["spec"][field] for field in wanted} == wanted


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"parallelism": 4, "completions": 4}, 4, id="the-parallelism"),
        pytest.param({"parallelism": None, "completions": 4}, 1, id="parallelism-unsaid-is-one"),
        pytest.param({"parallelism": 0, "completions": 4}, 1, id="at-least-one"),
        pytest.param({"parallelism": 4, "completions": 2}, 2, id="no-more-than-can-come"),
        pytest.param({"parallelism": 4, "completions": None}, 4, id="completions-unsaid"),
        pytest.param({"gang": 3, "parallelism": 4, "completions": 8}, 3, id="as-said"),
        pytest.param({"gang": 3, "parallelism": 4, "completions": 2}, 2, id="said-yet-more-than-can-come"),
    ],
)
def test_the_min_count(cluster: SmallCluster, spec: dict[str, Any], expected: int) -> None:
    said = spec.pop("gang", None)
    gang = {} if said is None else {"minCount": said}
    add_job(cluster, scheduling={"schedulingPolicy": {"gang": gang}}, **spec)
    assert min_counts(cluster) == (expected, expected)


def test_the_min_count_follows_the_parallelism_up_and_down(cluster: SmallCluster) -> None:
    add_job(cluster, completions=8)
    for parallelism in (6, 3):
        cluster.patch(JOBS, "j", {"spec": {"parallelism": parallelism}})
        assert min_counts(cluster) == (parallelism, parallelism)
        assert len(cluster.all(PODS)) == parallelism


def test_the_min_count_follows_what_the_job_says(cluster: SmallCluster) -> None:
    add_job(cluster, scheduling={"schedulingPolicy": {"gang": {"minCount": 4}}})
    cluster.patch(JOBS, "j", {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}})
    assert min_counts(cluster) == (2, 2)


def make_workload(
    job: Object, name: str = "mine", *, owned: bool, referring: bool, templates: int = 1
) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
    spec: dict[str, Any] = {
        "podGroupTemplates": [
            {"name": f"t{number}", "schedulingPolicy": {"gang": {"minCount": 2}}}
            for number in range(templates)
        ]
    }
    if referring:
        spec["controllerRef"] = {"apiGroup": "batch", "kind": "Job", "name": "j"}
    meta = {"ownerReferences": [{**owner, "controller": True}]} if owned else {}
    return {"name": name, "meta": meta, "spec": spec}


class Adoption:
    """A cluster whose controller starts only when the other objects are there."""

    def __init__(self) -> None:
        self.cluster = SmallCluster()
        self.job = add_job(self.cluster)

    def start(self) -> SmallCluster:
        self.cluster.cluster = EmbeddedCluster(self.cluster.server, controllers=[Jobs()])
        self.cluster.settle()
        return self.cluster


def test_an_owned_workload_that_refers_to_the_job_is_used_and_follows() -> None:
    adoption = Adoption()
    adoption.cluster.create(WORKLOADS, **make_workload(adoption.job, owned=True, referring=True))
    cluster = adoption.start()
    assert names(cluster.all(WORKLOADS)) == ["mine"]
    assert min_counts(cluster) == (4, 4)
    assert names(cluster.all(POD_GROUPS)) == [group_name("mine", "t0")]
    assert groups_of_pods(cluster) == {group_name("mine", "t0")}


@pytest.mark.parametrize(
    ("owned", "referring"), [pytest.param(True, False, id="owned"), pytest.param(False, True, id="referring")]
)
def test_a_workload_that_is_only_half_the_jobs_is_not_touched(owned: bool, referring: bool) -> None:
    adoption = Adoption()
    made = make_workload(adoption.job, owned=owned, referring=referring)
    before = adoption.cluster.create(WORKLOADS, **made)
    cluster = adoption.start()
    assert cluster.get(WORKLOADS, "mine") == before
    assert sorted(names(cluster.all(WORKLOADS))) == sorted(["mine", workload_name(adoption.job)])
    assert groups_of_pods(cluster) == {group_name(workload_name(adoption.job), "j-pgt-0")}


def test_two_owned_workloads_make_ordinary_pods() -> None:
    adoption = Adoption()
    for name in ("mine", "mine-too"):
        made = make_workload(adoption.job, name, owned=True, referring=True)
        adoption.cluster.create(WORKLOADS, **made)
    cluster = adoption.start()
    assert groups_of_pods(cluster) == {None}
    assert cluster.all(POD_GROUPS) == []


def test_an_owned_workload_with_two_templates_holds_the_job() -> None:
    adoption = Adoption()
    made = make_workload(adoption.job, owned=True, referring=True, templates=2)
    adoption.cluster.create(WORKLOADS, **made)
    cluster = adoption.start()
    assert cluster.all(PODS) == []
    assert cluster.events() == []


@pytest.mark.parametrize(
    ("owned", "used"), [pytest.param(True, True, id="owned"), pytest.param(False, False, id="not-owned")]
)
def test_a_group_of_the_workload_is_used_if_the_job_owns_it(owned: bool, used: bool) -> None:
    adoption = Adoption()
    made = make_workload(adoption.job, owned=True, referring=True)
    adoption.cluster.create(WORKLOADS, **made)
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 1}},
        "workloadRef": {"workloadName": "mine", "templateName": "t0"},
    }
    meta = made["meta"] if owned else {}
    adoption.cluster.create(POD_GROUPS, "theirs", meta=meta, spec=spec)
    cluster = adoption.start()
    assert groups_of_pods(cluster) == {"theirs" if used else group_name("mine", "t0")}
    count = cluster.get(POD_GROUPS, "theirs")["spec"]["schedulingPolicy"]["gang"]["minCount"]
    assert count == (4 if used else 1)


def test_a_job_that_has_started_or_has_pods_gets_ordinary_pods() -> None:
    adoption = Adoption()
    adoption.cluster.patch(JOBS, "j", {"status": {"startTime": "2026-01-01T00:00:00Z"}})
    cluster = adoption.start()
    assert groups_of_pods(cluster) == {None}
    assert cluster.all(WORKLOADS) == []


def test_another_object_under_the_workloads_name_is_told_and_waited_for() -> None:
    adoption = Adoption()
    name = workload_name(adoption.job)
    adoption.cluster.create(WORKLOADS, name, spec={"podGroupTemplates": []})
    cluster = adoption.start()
    assert cluster.all(PODS) == []
    message = f"Failed to create Workload for Job j: {name} already exists"
    assert cluster.events() == [("Warning", "FailedWorkloadCreate", message)]
    cluster.delete(WORKLOADS, name)
    cluster.run(120)
    assert groups_of_pods(cluster) == {group_name(name, "j-pgt-0")}


def test_a_users_group_under_our_name_is_not_taken_over() -> None:
    adoption = Adoption()
    taken = group_name(workload_name(adoption.job), "j-pgt-0")
    theirs = adoption.cluster.create(POD_GROUPS, taken, spec={"schedulingPolicy": {"gang": {"minCount": 1}}})
    cluster = adoption.start()
    assert cluster.get(POD_GROUPS, taken) == theirs
    (group,) = groups_of_pods(cluster)
    assert group not in (None, taken)
    assert cluster.get(POD_GROUPS, str(group))["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}


def test_a_group_deleted_while_the_job_runs_is_still_joined_and_no_other_made(cluster: SmallCluster) -> None:
    add_job(cluster, completions=8)
    name = only_group(cluster)["metadata"]["name"]
    cluster.patch(POD_GROUPS, name, {"metadata": {"finalizers": ["example.com/held"]}})
    cluster.delete(POD_GROUPS, name)
    cluster.patch(JOBS, "j", {"spec": {"parallelism": 6}})
    assert names(cluster.all(POD_GROUPS)) == [name]
    assert len(cluster.all(PODS)) == 6
    assert groups_of_pods(cluster) == {name}


def test_a_workload_deleted_while_the_job_runs_is_not_made_again(cluster: SmallCluster) -> None:
    add_job(cluster, completions=8)
    cluster.delete(WORKLOADS, only_workload(cluster)["metadata"]["name"])
    cluster.patch(JOBS, "j", {"spec": {"parallelism": 6}})
    assert cluster.all(WORKLOADS) == []
    assert len(cluster.all(PODS)) == 6
    assert groups_of_pods(cluster) == {only_group(cluster)["metadata"]["name"]}


def test_a_template_that_names_its_group_makes_nothing(cluster: SmallCluster) -> None:
    add_job(cluster, pod={"schedulingGroup": {"podGroupName": "own"}})
    assert cluster.all(WORKLOADS) == []
    assert groups_of_pods(cluster) == {"own"}


# ── Jobs of other controllers ──


def add_parent(cluster: SmallCluster) -> None:
    templates = [
        {"name": "leader", "schedulingPolicy": {"basic": {}}},
        {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": {"all": {}}},
    ]
    reference = {"apiGroup": "jobset.example.com", "kind": "JobSet", "name": "js"}
    spec = {"controllerRef": reference, "podGroupTemplates": templates}
    cluster.create(WORKLOADS, "whole", spec=spec)


def child(template: str | None, **parent: str) -> Object:
    notes = {} if template is None else {"scheduling.k8s.io/group-template-name": template}
    return {"ownerReferences": [{**PARENT, **parent}], "annotations": notes}


def test_a_job_of_another_controller_makes_nothing(cluster: SmallCluster) -> None:
    add_parent(cluster)
    add_job(cluster, meta=child(None))
    assert names(cluster.all(WORKLOADS)) == ["whole"]
    assert cluster.all(POD_GROUPS) == []
    assert groups_of_pods(cluster) == {None}


def test_with_the_annotation_it_gets_a_group_of_the_parents_template(cluster: SmallCluster) -> None:
    add_parent(cluster)
    job = add_job(cluster, meta=child("workers"))
    group = only_group(cluster)
    assert group["metadata"]["name"] == group_name("whole", "workers")
    assert [owner["uid"] for owner in group["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
    assert group["spec"] == {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "disruptionMode": {"all": {}},
        "workloadRef": {"workloadName": "whole", "templateName": "workers"},
    }
    assert groups_of_pods(cluster) == {group_name("whole", "workers")}


def test_a_second_job_of_the_same_template_gets_a_group_of_its_own(cluster: SmallCluster) -> None:
    add_parent(cluster)
    add_job(cluster, meta=child("workers"))
    add_job(cluster, "k", meta=child("workers"))
    assert len(cluster.all(PODS)) == 8
    assert len(cluster.all(POD_GROUPS)) == len(groups_of_pods(cluster)) == 2


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(child("nope"), id="no-such-template"),
        pytest.param(child("workers", kind="CronJob", apiVersion="batch/v1"), id="of-a-cron-job"),
        pytest.param(child("workers", name="other"), id="of-another-parent"),
    ],
)
def test_what_leads_nowhere_gives_ordinary_pods_without_a_word(cluster: SmallCluster, meta: Object) -> None:
    add_parent(cluster)
    add_job(cluster, meta=meta)
    assert cluster.all(POD_GROUPS) == []
    assert groups_of_pods(cluster) == {None}
    assert {reason for _, reason, _ in cluster.events()} == {"SuccessfulCreate"}


def test_the_annotation_without_another_controller_says_nothing(cluster: SmallCluster) -> None:
    add_parent(cluster)
    job = add_job(cluster, meta={"annotations": {"scheduling.k8s.io/group-template-name": "workers"}})
    assert groups_of_pods(cluster) == {group_name(workload_name(job), "j-pgt-0")}


def test_the_vectors_are_those_of_the_conformance_suite() -> None:
    handed = Path(__file__).parents[2] / "conformance" / "cases" / "job.yaml"
    known = yaml.safe_load(handed.read_text())["vectors"]
    assert [(v["job"], v["uid"], v["workload"], v["group"]) for v in known] == VECTORS


def test_a_child_that_has_started_gets_no_group() -> None:
    cluster = SmallCluster()
    add_parent(cluster)
    add_job(cluster, meta=child("workers"), suspend=True)
    cluster.patch(JOBS, "j", {"status": {"startTime": "2026-01-01T00:00:00Z"}, "spec": {"suspend": False}})
    cluster.cluster = EmbeddedCluster(cluster.server, controllers=[Jobs()])
    cluster.settle()
    assert cluster.all(POD_GROUPS) == []
    assert groups_of_pods(cluster) == {None}


def test_a_child_that_owns_a_group_of_the_template_uses_it() -> None:
    cluster = SmallCluster()
    add_parent(cluster)
    job = add_job(cluster, meta=child("workers"))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"]}
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 3}},
        "workloadRef": {"workloadName": "whole", "templateName": "workers"},
    }
    meta = {"ownerReferences": [{**owner, "controller": True}]}
    cluster.create(POD_GROUPS, "theirs", meta=meta, spec=spec)
    cluster.cluster = EmbeddedCluster(cluster.server, controllers=[Jobs()])
    cluster.settle()
    assert groups_of_pods(cluster) == {"theirs"}
    assert names(cluster.all(POD_GROUPS)) == ["theirs"]


def test_a_group_changed_by_hand_is_put_right(cluster: SmallCluster) -> None:
    add_job(cluster)
    name = only_group(cluster)["metadata"]["name"]
    by_hand = {"spec": {"schedulingPolicy": {"gang": {"minCount": 9}}}}
    cluster.patch(POD_GROUPS, name, by_hand)
    assert min_counts(cluster) == (4, 4)


def test_a_held_job_goes_on_when_its_workload_is_mended() -> None:
    adoption = Adoption()
    made = make_workload(adoption.job, owned=True, referring=True, templates=2)
    adoption.cluster.create(WORKLOADS, **made)
    cluster = adoption.start()
    assert cluster.all(PODS) == []
    cluster.patch(WORKLOADS, "mine", {"spec": {"podGroupTemplates": made["spec"]["podGroupTemplates"][:1]}})
    assert groups_of_pods(cluster) == {group_name("mine", "t0")}
