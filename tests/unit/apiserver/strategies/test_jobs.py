"""Jobs through the server."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import CONTAINER, JOBS, FullServer

from muster.apiserver.kinds import Object

TEMPLATE: Object = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}


def job(server: FullServer, name: str = "j", **spec: Any) -> Object:
    return server.create(JOBS, name, spec={"template": TEMPLATE, **spec})


def test_a_job_gets_its_defaults_labels_and_selector() -> None:
    made = job(FullServer())
    uid = made["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    template = made["spec"].pop("template")
    assert template["metadata"] == {"labels": labels}
    assert "enableServiceLinks" not in template["spec"]
    assert made["metadata"]["labels"] == labels
    assert made["spec"] == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
    }


def test_parallelism_alone_leaves_the_number_of_completions_open() -> None:
    assert "completions" not in job(FullServer(), parallelism=5)["spec"]


def test_a_failure_policy_waits_for_pods_to_fail() -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    spec = job(FullServer(), podFailurePolicy={"rules": rules})["spec"]
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"] == "True"


@pytest.mark.parametrize("key", ["completionMode", "managedBy", "backoffLimitPerIndex"])
def test_what_a_job_is_does_not_change(key: str) -> None:
    server = FullServer()
    job(server, completionMode="Indexed", completions=3, parallelism=3)
    value = {"completionMode": "NonIndexed", "managedBy": "a.b/c", "backoffLimitPerIndex": 1}[key]
    found = server.change_faults(JOBS, "j", spec={key: value})
    assert found[-1].startswith(f"spec.{key}: Invalid value: ")
    assert found[-1].endswith("field is immutable")


def test_an_indexed_job_grows_in_both_numbers_at_once() -> None:
    server = FullServer()
    job(server, completionMode="Indexed", completions=3, parallelism=3)
    assert server.change_faults(JOBS, "j", spec={"completions": 5}) == [
        "spec.completions: Invalid value: 5: can only be modified in tandem with spec.parallelism"
    ]
    assert server.change(JOBS, "j", spec={"completions": 5, "parallelism": 5})["metadata"]["generation"] == 2


def test_the_template_of_a_suspended_job_may_say_where_and_not_what() -> None:
    server = FullServer()
    job(server, suspend=True)
    where = {"template": {"spec": {"nodeSelector": {"a": "b"}}}}
    server.change(JOBS, "j", spec=where)
    what = {"template": {"spec": {"containers": [{**CONTAINER, "image": "z"}]}}}
    assert server.change_faults(JOBS, "j", spec=what)[0].startswith("spec.template.spec: ")
    server.change(JOBS, "j", spec={"suspend": False})
    where["template"]["spec"]["nodeSelector"] = {"a": "c"}
    assert server.change_faults(JOBS, "j", spec=where)[0].startswith("spec.template: ")


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        pytest.param(None, {}, ": Invalid value: null: field cannot be set once created", id="added"),
        pytest.param({}, None, ": Invalid value: null: field cannot be cleared once set", id="removed"),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            {"schedulingPolicy": {"gang": None, "basic": {}}},
            ".schedulingPolicy: Invalid value: null: the basic/gang policy variant is immutable after "
            "creation; "
            "only schedulingPolicy.gang.minCount may be updated",
            id="another policy",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}},
            {"disruptionMode": {"all": None, "single": {}}},
            ".disruptionMode: Invalid value: null: field is immutable",
            id="another disruption mode",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            {"schedulingPolicy": {"gang": {"minCount": 5}}},
            ".schedulingPolicy.gang.minCount: Invalid value: 5: must not be greater than parallelism (4)",
            id="a gang larger than the job",
        ),
    ],
)
def test_scheduling_is_fixed_but_for_min_count(
    before: Object | None, after: Object | None, fault: str
) -> None:
    server = FullServer()
    job(server, parallelism=4, **({} if before is None else {"scheduling": before}))
    assert server.change_faults(JOBS, "j", spec={"scheduling": after}) == [f"spec.scheduling{fault}"]


def test_parallelism_and_min_count_may_rise_together() -> None:
    server = FullServer()
    job(server, parallelism=4, scheduling={"schedulingPolicy": {"gang": {"minCount": 4}}})
    more = {"parallelism": 6, "scheduling": {"schedulingPolicy": {"gang": {"minCount": 6}}}}
    assert server.change(JOBS, "j", spec=more)["spec"]["parallelism"] == 6


def test_scheduling_needs_its_gate() -> None:
    server = FullServer(gates=frozenset({"GenericWorkload"}))
    assert "scheduling" not in job(server, scheduling={"schedulingPolicy": {"basic": {}}})["spec"]


def test_a_put_says_again_what_was_generated() -> None:
    server = FullServer()
    job(server)
    body = {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE}}
    found = server.faults("PUT", f"{JOBS}/j", body)
    assert [fault.split(":")[0] for fault in found] == [
        "spec.selector",
        "spec.template.metadata.labels",
        "spec.selector",
        "spec.template",
    ]


def test_a_deletion_that_leaves_the_pods_says_so() -> None:
    server = FullServer()
    job(server)
    response = server.ask("DELETE", f"{JOBS}/j")
    assert "child pods are preserved by default" in dict(response.headers)["Warning"]
    assert response.object is not None
    assert response.object["metadata"]["finalizers"] == ["orphan"]


def test_a_name_with_a_dot_is_warned_of() -> None:
    response = FullServer().ask("POST", JOBS, {"metadata": {"name": "a.b"}, "spec": {"template": TEMPLATE}})
    assert response.status == 201
    assert "a DNS label is recommended: [must not contain dots]" in dict(response.headers)["Warning"]


def true(*types: str) -> list[dict[str, str]]:
    return [{"type": type_, "status": "True"} for type_ in types]


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        pytest.param(
            {"active": 1, "ready": 2},
            ["status.ready: Invalid value: 2: cannot set more ready pods than active"],
            id="more ready than there are",
        ),
        pytest.param(
            {"conditions": true("Complete")},
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.conditions: Invalid value: cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true condition",
            ],
            id="complete without the criteria",
        ),
        pytest.param(
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
            id="a pod counted twice",
        ),
        pytest.param(
            {"failedIndexes": "1"},
            [
                'status.failedIndexes: Invalid value: "1": cannot set non-null failedIndexes when '
                "backoffLimitPerIndex is null"
            ],
            id="failed indexes of none",
        ),
    ],
)
def test_a_bad_status_is_refused(status: Object, faults: list[str]) -> None:
    server = FullServer()
    job(server)
    assert server.change_faults(JOBS, "j/status", status=status) == faults


def test_an_end_stays_an_end() -> None:
    server = FullServer()
    job(server)
    start, end = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    status = {"startTime": start, "completionTime": end, "conditions": true("SuccessCriteriaMet", "Complete")}
    server.change(JOBS, "j/status", status=status)
    found = server.change_faults(JOBS, "j/status", status={"conditions": [], "startTime": end})
    assert [fault.rsplit(": ", 1)[1] for fault in found] == [
        "cannot set completionTime when there is no Complete=True condition",
        "cannot disable the terminal Complete=True condition",
        "cannot disable the SuccessCriteriaMet=True condition",
        "field is immutable for unsuspended job once set",
    ]
