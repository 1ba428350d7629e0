"""Which pods of a Job go first, and what a new one looks like."""

import pytest

from muster.controllers.job_pods import first_to_go, free_indexes, index_of, make_pod
from muster.controllers.ports import Object


def make_job(**spec: object) -> Object:
    template = {"spec": {"containers": [{"name": "c"}]}, **spec.pop("template", {})}  # type: ignore[dict-item]
    return {
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "spec": {"template": template, **spec},
    }


def make_pod_object(
    name: str, *, node: str = "", phase: str = "Pending", ready: bool = False, index: int | None = None
) -> Object:
    notes = {} if index is None else {"batch.kubernetes.io/job-completion-index": str(index)}
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {
        "metadata": {"name": name, "uid": name, "annotations": notes},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": conditions},
    }


def test_those_without_a_node_go_first_then_the_unready_then_the_young() -> None:
    found = first_to_go(
        [
            make_pod_object("ready-old", node="n1", phase="Running", ready=True),
            make_pod_object("ready-young", node="n1", phase="Running", ready=True),
            make_pod_object("unready", node="n1", phase="Running"),
            make_pod_object("starting", node="n1"),
            make_pod_object("waiting"),
        ],
        5,
    )
    assert [pod["metadata"]["name"] for pod in found] == [
        "waiting",
        "starting",
        "unready",
        "ready-young",
        "ready-old",
    ]


def test_a_second_pod_of_one_index_goes_before_all_others() -> None:
    running = {"node": "n1", "phase": "Running", "ready": True}
    pods = [
        make_pod_object("a", index=0, **running),  # type: ignore[arg-type]
        make_pod_object("b", index=1),
        make_pod_object("a-again", index=0, **running),  # type: ignore[arg-type]
    ]
    assert [pod["metadata"]["name"] for pod in first_to_go(pods, 1)] == ["a-again"]


def test_free_indexes_are_the_lowest_without_a_pod_or_a_success() -> None:
    pods = [make_pod_object("p", index=1), make_pod_object("q", index=3, phase="Failed")]
    assert free_indexes(make_job(completions=6), pods, {0}, 3) == [2, 3, 4]


@pytest.mark.parametrize("text", ["", "one", "-1", "²", "9" * 5000])
def test_an_index_that_somebody_has_overwritten_is_none(text: str) -> None:
    pod = make_pod_object("p")
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = text
    assert index_of(pod) is None


@pytest.mark.parametrize(
    ("name", "index", "prefix"),
    [
        pytest.param("j", None, "j-", id="short"),
        pytest.param("j" * 63, None, "j" * 57 + "-", id="cut-to-fit"),
        pytest.param("j" * 63, 12, "j" * 54 + "-12-", id="cut-to-fit-with-its-index"),
    ],
)
def test_names_leave_room_for_what_the_api_appends(name: str, index: int | None, prefix: str) -> None:
    job = make_job()
    job["metadata"]["name"] = name
    pod = make_pod(job, "", index)
    assert pod["metadata"]["generateName"] == prefix
    assert len(prefix) <= 58


def test_labels_annotations_and_the_group_come_along_and_the_template_is_not_changed() -> None:
    job = make_job(template={"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
    pod = make_pod(job, "g", 0)
    assert pod["metadata"]["labels"] == {"a": "b", "batch.kubernetes.io/job-completion-index": "0"}
    assert pod["metadata"]["annotations"]["c"] == "d"
    assert pod["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    assert job["spec"]["template"]["metadata"]["labels"] == {"a": "b"}
    assert "schedulingGroup" not in job["spec"]["template"]["spec"]


def test_a_variable_that_the_container_sets_itself_stays() -> None:
    mine = {"name": "JOB_COMPLETION_INDEX", "value": "7"}
    job = make_job(template={"spec": {"containers": [{"name": "c", "env": [mine]}]}})
    assert make_pod(job, "", 0)["spec"]["containers"][0]["env"] == [mine]
