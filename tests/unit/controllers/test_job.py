"""Jobs: pods as wanted, counted once each, and every way to the end."""

from typing import Any

import pytest
from tests.unit.controllers.small_cluster import SmallCluster, names

from muster.controllers.job import Jobs
from muster.controllers.job_pods import TRACKING
from muster.controllers.objects import find_condition, has_condition, is_deleting
from muster.controllers.ports import JOBS, POD_GROUPS, PODS, WORKLOADS, Object


@pytest.fixture
def cluster() -> SmallCluster:
    return SmallCluster(Jobs())


def add_job(cluster: SmallCluster, name: str = "j", **spec: Any) -> Object:
    pod = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1", "restartPolicy": "Never"}
    base = {"parallelism": 2, "completions": 2, "backoffLimit": 6, "template": {"spec": pod}}
    return cluster.create(JOBS, name, spec={**base, **spec})


def pods(cluster: SmallCluster) -> list[Object]:
    """Pods in order of creation."""
    return sorted(cluster.all(PODS), key=lambda pod: int(pod["metadata"]["uid"].split("-")[1]))


def active(cluster: SmallCluster) -> list[Object]:
    return [
        pod
        for pod in pods(cluster)
        if not is_deleting(pod) and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    ]


def end(cluster: SmallCluster, pod: Object, phase: str = "Succeeded") -> None:
    cluster.patch(PODS, pod["metadata"]["name"], {"status": {"phase": phase}})


def status(cluster: SmallCluster) -> Object:
    found: Object = cluster.get(JOBS, "j").get("status", {})
    return found


def types(cluster: SmallCluster) -> list[str]:
    return [c["type"] for c in status(cluster).get("conditions", []) if c["status"] == "True"]


def test_pods_are_made_like_stock_makes_them(cluster: SmallCluster) -> None:
    job = add_job(cluster)
    first = pods(cluster)[0]
    assert first["metadata"]["generateName"] == "j-"
    assert first["metadata"]["finalizers"] == [TRACKING]
    assert "annotations" not in first["metadata"]
    (owner,) = first["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", job["metadata"]["uid"], True)
    assert status(cluster)["active"] == 2
    assert status(cluster)["startTime"]
    texts = [text for _, reason, text in cluster.events() if reason == "SuccessfulCreate"]
    assert texts == [f"Created pod: {name}" for name in names(pods(cluster))]


def test_a_job_of_another_manager_is_left_alone(cluster: SmallCluster) -> None:
    add_job(cluster, managedBy="example.com/other")
    assert cluster.all(PODS) == cluster.all(WORKLOADS) == cluster.all(POD_GROUPS) == []
    assert status(cluster) == {}


def test_a_job_that_names_us_as_its_manager_runs(cluster: SmallCluster) -> None:
    add_job(cluster, managedBy="kubernetes.io/job-controller")
    assert len(cluster.all(PODS)) == 2


def test_it_completes_when_enough_succeeded(cluster: SmallCluster) -> None:
    add_job(cluster)
    for pod in pods(cluster):
        end(cluster, pod)
    final = status(cluster)
    assert types(cluster) == ["SuccessCriteriaMet", "Complete"]
    assert final["succeeded"] == 2
    assert final["completionTime"]
    assert "active" not in final
    assert not final.get("uncountedTerminatedPods")
    condition = find_condition(cluster.get(JOBS, "j"), "Complete")
    assert condition is not None
    assert condition["reason"] == "CompletionsReached"
    assert condition["message"] == "Reached expected number of succeeded pods"
    assert ("Normal", "Completed", "Job completed") in cluster.events()
    assert all("finalizers" not in pod["metadata"] for pod in pods(cluster))
    assert len(cluster.all(WORKLOADS)) == len(cluster.all(POD_GROUPS)) == 1


def test_no_more_pods_than_are_still_needed(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=3, completions=4)
    assert len(active(cluster)) == 3
    end(cluster, pods(cluster)[0])
    assert len(active(cluster)) == 3
    end(cluster, pods(cluster)[1])
    assert len(active(cluster)) == 2
    assert status(cluster)["succeeded"] == 2


def test_without_completions_one_success_and_an_empty_house_end_it(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=2, completions=None)
    first, second = pods(cluster)
    end(cluster, first)
    assert len(cluster.all(PODS)) == 2
    assert types(cluster) == []
    end(cluster, second)
    assert types(cluster) == ["SuccessCriteriaMet", "Complete"]


def test_a_failed_pod_is_replaced_after_ten_seconds_then_twenty(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=1, completions=1)
    for delay_s in (10, 20, 40):
        end(cluster, active(cluster)[0], "Failed")
        assert active(cluster) == []
        cluster.run(delay_s - 1)
        assert active(cluster) == []
        cluster.run(2)
        assert len(active(cluster)) == 1
    assert status(cluster)["failed"] == 3


def test_a_success_makes_the_delay_short_again(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=1, completions=5)
    for _ in range(3):
        end(cluster, active(cluster)[0], "Failed")
        cluster.run(60)
    end(cluster, active(cluster)[0])
    end(cluster, active(cluster)[0], "Failed")
    cluster.run(11)
    assert len(active(cluster)) == 1


def test_more_failures_than_the_limit_end_it_and_its_pods(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=2, completions=2, backoffLimit=0)
    end(cluster, pods(cluster)[0], "Failed")
    condition = find_condition(cluster.get(JOBS, "j"), "Failed")
    assert types(cluster) == ["FailureTarget", "Failed"]
    assert condition is not None
    assert condition["reason"] == "BackoffLimitExceeded"
    assert condition["message"] == "Job has reached the specified backoff limit"
    assert status(cluster)["failed"] == 2
    assert active(cluster) == []
    assert (
        "Warning",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    ) in cluster.events()


def test_the_end_is_stated_only_when_the_last_pod_is_gone(cluster: SmallCluster) -> None:
    pod = {"containers": [{"name": "c"}], "nodeName": "n1", "terminationGracePeriodSeconds": 30}
    add_job(cluster, backoffLimit=0, template={"spec": pod})
    end(cluster, pods(cluster)[0], "Failed")
    assert types(cluster) == ["FailureTarget"]
    assert status(cluster)["terminating"] == 1
    cluster.delete(PODS, pods(cluster)[1]["metadata"]["name"], gracePeriodSeconds=0)
    assert types(cluster) == ["FailureTarget", "Failed"]
    assert status(cluster)["failed"] == 2


def test_the_deadline_ends_it(cluster: SmallCluster) -> None:
    add_job(cluster, activeDeadlineSeconds=30)
    cluster.run(29)
    assert types(cluster) == []
    cluster.run(2)
    assert types(cluster) == ["FailureTarget", "Failed"]
    assert (
        "Warning",
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
    ) in cluster.events()


def test_a_finished_job_is_deleted_after_its_time_to_live(cluster: SmallCluster) -> None:
    add_job(cluster, ttlSecondsAfterFinished=60)
    for pod in pods(cluster):
        end(cluster, pod)
    cluster.run(59)
    assert not is_deleting(cluster.get(JOBS, "j"))
    cluster.run(2)
    assert cluster.get(JOBS, "j")["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_a_deleted_pod_counts_as_failed_and_is_replaced(cluster: SmallCluster) -> None:
    add_job(cluster)
    cluster.delete(PODS, pods(cluster)[0]["metadata"]["name"])
    assert status(cluster)["failed"] == 1
    assert len(cluster.all(PODS)) == 1
    cluster.run(11)
    assert len(active(cluster)) == 2


@pytest.mark.parametrize(
    ("policy", "active_count", "failed"),
    [
        pytest.param("TerminatingOrFailed", 2, 1, id="replaced-while-it-ends"),
        pytest.param("Failed", 1, None, id="replaced-when-it-has-ended"),
    ],
)
def test_when_a_terminating_pod_is_replaced(
    cluster: SmallCluster, policy: str, active_count: int, failed: int | None
) -> None:
    pod = {"containers": [{"name": "c"}], "nodeName": "n1", "terminationGracePeriodSeconds": 30}
    add_job(cluster, podReplacementPolicy=policy, template={"spec": pod})
    cluster.delete(PODS, pods(cluster)[0]["metadata"]["name"])
    cluster.run(11)
    assert len(active(cluster)) == active_count
    assert status(cluster).get("failed") == failed
    end(cluster, pods(cluster)[0], "Failed")
    cluster.run(11)
    assert len(active(cluster)) == 2
    assert status(cluster)["failed"] == 1


def test_a_smaller_parallelism_removes_pods_without_counting_them(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=4, completions=8)
    cluster.patch(JOBS, "j", {"spec": {"parallelism": 1}})
    assert len(cluster.all(PODS)) == 1
    assert "failed" not in status(cluster)
    assert status(cluster)["active"] == 1
    assert [reason for _, reason, _ in cluster.events()].count("SuccessfulDelete") == 3


def test_suspended_and_resumed_it_keeps_its_workload_and_group(cluster: SmallCluster) -> None:
    add_job(cluster)
    before = names(cluster.all(POD_GROUPS))
    cluster.patch(JOBS, "j", {"spec": {"suspend": True}})
    assert cluster.all(PODS) == []
    assert types(cluster) == ["Suspended"]
    assert "startTime" not in status(cluster)
    assert "failed" not in status(cluster)
    assert ("Normal", "Suspended", "Job suspended") in cluster.events()
    cluster.run(30)
    cluster.patch(JOBS, "j", {"spec": {"suspend": False}})
    assert len(cluster.all(PODS)) == 2
    assert {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods(cluster)} == set(before)
    assert names(cluster.all(POD_GROUPS)) == before
    assert len(cluster.all(WORKLOADS)) == 1
    assert has_condition(cluster.get(JOBS, "j"), "Suspended", "False")
    assert ("Normal", "Resumed", "Job resumed") in cluster.events()


def test_created_suspended_it_has_its_objects_and_no_pods(cluster: SmallCluster) -> None:
    add_job(cluster, suspend=True)
    assert cluster.all(PODS) == []
    assert len(cluster.all(WORKLOADS)) == len(cluster.all(POD_GROUPS)) == 1
    assert types(cluster) == ["Suspended"]
    cluster.patch(JOBS, "j", {"spec": {"suspend": False}})
    assert len(cluster.all(PODS)) == 2


def test_no_parallelism_no_pods(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=0)
    assert cluster.all(PODS) == []
    assert len(cluster.all(POD_GROUPS)) == 1
    assert types(cluster) == []


def test_no_completions_wanted_it_is_complete_at_once(cluster: SmallCluster) -> None:
    add_job(cluster, completions=0)
    assert types(cluster) == ["SuccessCriteriaMet", "Complete"]


def test_a_job_deleted_in_the_foreground_lets_go_of_its_pods(cluster: SmallCluster) -> None:
    add_job(cluster)
    cluster.delete(JOBS, "j", propagationPolicy="Foreground")
    for pod in pods(cluster):
        cluster.delete(PODS, pod["metadata"]["name"])
    assert cluster.all(PODS) == []


def test_pods_of_a_job_that_is_gone_are_let_go_of(cluster: SmallCluster) -> None:
    add_job(cluster)
    cluster.delete(JOBS, "j")
    assert len(cluster.all(PODS)) == 2
    assert all("finalizers" not in pod["metadata"] for pod in pods(cluster))


def test_what_cannot_be_made_is_told_and_tried_again(cluster: SmallCluster) -> None:
    cluster.server.refusals.append(("POST", "/pods", 403, "quota"))
    add_job(cluster, parallelism=1, completions=1)
    assert ("Warning", "FailedCreate", "Error creating: quota") in cluster.events()
    cluster.server.refusals.clear()
    cluster.run(1)
    assert len(cluster.all(PODS)) == 1


def test_the_first_refused_pod_ends_the_look(cluster: SmallCluster) -> None:
    cluster.server.refusals.append(("POST", "/pods", 403, "quota"))
    add_job(cluster, parallelism=50, completions=50)
    looks = 2  # the second because its group has come meanwhile
    assert [reason for _, reason, _ in cluster.events()].count("FailedCreate") == looks


def test_a_refused_status_is_written_later_and_nothing_is_counted_twice(cluster: SmallCluster) -> None:
    add_job(cluster)
    cluster.server.refusals.append(("PATCH", "/jobs/j/status", 500, "broken"))
    for pod in pods(cluster):
        end(cluster, pod)
    assert all(TRACKING in pod["metadata"]["finalizers"] for pod in pods(cluster))
    cluster.server.refusals.clear()
    cluster.run(60)
    assert status(cluster)["succeeded"] == 2
    assert types(cluster) == ["SuccessCriteriaMet", "Complete"]


def test_pods_that_vanish_before_they_are_counted_are_counted_once(cluster: SmallCluster) -> None:
    add_job(cluster)
    cluster.server.refusals.append(("PATCH", "/pods/", 500, "broken"))
    first = pods(cluster)[0]
    row = cluster.server.catalog.by_name["pods"]
    new = {**first, "metadata": dict(first["metadata"]), "status": {"phase": "Succeeded"}}
    cluster.server.store.update(row, new, cluster.now_s)
    cluster.settle()
    assert status(cluster)["uncountedTerminatedPods"] == {"succeeded": [first["metadata"]["uid"]]}
    cluster.server.store.delete(row, new, cluster.now_s)
    cluster.settle()
    cluster.server.refusals.clear()
    cluster.run(60)
    assert status(cluster)["succeeded"] == 1


def test_many_pods_are_made_in_portions(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=1000, completions=1000)
    assert len(cluster.all(PODS)) == 1000
    assert status(cluster)["active"] == 1000


def test_many_pods_ending_at_once_are_all_counted(cluster: SmallCluster) -> None:
    add_job(cluster, parallelism=1200, completions=1200)
    row = cluster.server.catalog.by_name["pods"]
    for pod in pods(cluster):
        new = {**pod, "metadata": dict(pod["metadata"]), "status": {"phase": "Succeeded"}}
        cluster.server.store.update(row, new, cluster.now_s)
    cluster.settle()
    assert status(cluster)["succeeded"] == 1200
    assert types(cluster) == ["SuccessCriteriaMet", "Complete"]


# ── indexed ──


def indexes(cluster: SmallCluster) -> list[str]:
    note = "batch.kubernetes.io/job-completion-index"
    return sorted(pod["metadata"]["annotations"][note] for pod in active(cluster))


def by_index(cluster: SmallCluster, index: int) -> Object:
    note = "batch.kubernetes.io/job-completion-index"
    return next(pod for pod in active(cluster) if pod["metadata"]["annotations"][note] == str(index))


def test_indexed_pods_are_numbered(cluster: SmallCluster) -> None:
    add_job(cluster, completionMode="Indexed", parallelism=2, completions=3)
    pod = pods(cluster)[1]
    assert indexes(cluster) == ["0", "1"]
    assert pod["metadata"]["generateName"] == "j-1-"
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert pod["spec"]["hostname"] == "j-1"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_an_index_is_done_once(cluster: SmallCluster) -> None:
    add_job(cluster, completionMode="Indexed", parallelism=2, completions=3)
    end(cluster, by_index(cluster, 1))
    assert indexes(cluster) == ["0", "2"]
    assert status(cluster)["completedIndexes"] == "1"
    end(cluster, by_index(cluster, 0))
    end(cluster, by_index(cluster, 2))
    assert status(cluster)["completedIndexes"] == "0-2"
    assert status(cluster)["succeeded"] == 3
    assert types(cluster) == ["SuccessCriteriaMet", "Complete"]


def test_a_failed_index_is_tried_again(cluster: SmallCluster) -> None:
    add_job(cluster, completionMode="Indexed", parallelism=2, completions=2)
    end(cluster, by_index(cluster, 0), "Failed")
    cluster.run(11)
    assert indexes(cluster) == ["0", "1"]


def test_nothing_is_remembered_of_a_job_that_is_gone() -> None:
    jobs = Jobs()
    cluster = SmallCluster(jobs)
    add_job(cluster)
    end(cluster, pods(cluster)[0], "Failed")
    cluster.delete(JOBS, "j")
    assert jobs._failures == {}


# ── policies ──


def fail(cluster: SmallCluster, pod: Object, code: int = 1, **status: Any) -> None:
    state = {"terminated": {"exitCode": code}}
    ended = {"phase": "Failed", "containerStatuses": [{"name": "c", "state": state}], **status}
    cluster.patch(PODS, pod["metadata"]["name"], {"status": ended})


DISRUPTED = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}


def test_a_failure_that_is_to_be_ignored_counts_for_nothing_and_is_replaced(cluster: SmallCluster) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    add_job(cluster, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    fail(cluster, active(cluster)[0], **DISRUPTED)
    assert "failed" not in status(cluster)
    assert len(active(cluster)) == 2
    assert "finalizers" not in pods(cluster)[0]["metadata"]
    fail(cluster, active(cluster)[0])
    assert types(cluster) == ["FailureTarget", "Failed"]


def test_a_failure_that_fails_the_job_ends_it_at_once(cluster: SmallCluster) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    add_job(cluster, podFailurePolicy={"rules": [rule]})
    fail(cluster, active(cluster)[0], 1)
    assert types(cluster) == []
    name = active(cluster)[0]["metadata"]["name"]
    fail(cluster, active(cluster)[0], 42)
    condition = find_condition(cluster.get(JOBS, "j"), "Failed")
    assert condition is not None
    assert condition["reason"] == "PodFailurePolicy"
    assert condition["message"] == (
        f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    )


def test_with_a_limit_per_index_the_others_go_on(cluster: SmallCluster) -> None:
    add_job(cluster, completionMode="Indexed", backoffLimit=2**31 - 1, backoffLimitPerIndex=1)
    note = "batch.kubernetes.io/job-index-failure-count"
    assert by_index(cluster, 0)["metadata"]["annotations"][note] == "0"
    fail(cluster, by_index(cluster, 0))
    cluster.run(11)
    assert by_index(cluster, 0)["metadata"]["annotations"][note] == "1"
    assert status(cluster)["failedIndexes"] == ""
    fail(cluster, by_index(cluster, 0))
    cluster.run(60)
    assert indexes(cluster) == ["1"]
    assert status(cluster)["failedIndexes"] == "0"
    end(cluster, by_index(cluster, 1))
    condition = find_condition(cluster.get(JOBS, "j"), "Failed")
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("FailedIndexes", "Job has failed indexes")


def test_more_failed_indexes_than_allowed_end_the_job(cluster: SmallCluster) -> None:
    limits = {"backoffLimit": 2**31 - 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
    add_job(cluster, completionMode="Indexed", parallelism=1, completions=3, **limits)
    fail(cluster, by_index(cluster, 0))
    condition = find_condition(cluster.get(JOBS, "j"), "Failed")
    assert condition is not None
    assert condition["reason"] == "MaxFailedIndexesExceeded"


def test_a_success_policy_completes_the_job_early_and_removes_the_rest(cluster: SmallCluster) -> None:
    policy = {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]}
    add_job(cluster, completionMode="Indexed", parallelism=3, completions=3, successPolicy=policy)
    end(cluster, by_index(cluster, 1))
    assert types(cluster) == []
    end(cluster, by_index(cluster, 2))
    condition = find_condition(cluster.get(JOBS, "j"), "Complete")
    assert condition is not None
    assert (condition["reason"], condition["message"]) == ("SuccessPolicy", "Matched rules at index 0")
    assert active(cluster) == []
    assert "failed" not in status(cluster)
