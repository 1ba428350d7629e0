"""What failures and successes mean to a Job."""

from typing import Any

import pytest

from muster.controllers.job_policies import (
    COUNT,
    FAILURE_COUNT,
    failures_so_far,
    find_success_rule,
    meaning_of_failure,
)
from muster.controllers.ports import Object


def make_job(**spec: Any) -> Object:
    return {"metadata": {"name": "j"}, "spec": spec}


def make_pod(
    *, code: int = 1, phase: str = "Failed", conditions: tuple[Object, ...] = (), failures: int = 0
) -> Object:
    state = {"terminated": {"exitCode": code}}
    return {
        "metadata": {"name": "p", "namespace": "ml", "annotations": {FAILURE_COUNT: str(failures)}},
        "status": {
            "phase": phase,
            "conditions": list(conditions),
            "containerStatuses": [{"name": "c", "state": state}],
        },
    }


def on_codes(operator: str, *values: int, **more: str) -> Object:
    return {"action": "Ignore", "onExitCodes": {"operator": operator, "values": list(values), **more}}


TARGET = {"type": "DisruptionTarget", "status": "True"}
ON_TARGET = {"action": "Ignore", "onPodConditions": [TARGET]}


@pytest.mark.parametrize(
    ("rule", "pod", "met"),
    [
        pytest.param(on_codes("In", 1, 2), make_pod(code=2), True, id="code-in"),
        pytest.param(on_codes("In", 1, 2), make_pod(code=3), False, id="code-not-in"),
        pytest.param(on_codes("NotIn", 1, 2), make_pod(code=3), True, id="code-not-in-wanted"),
        pytest.param(on_codes("NotIn", 1, 2), make_pod(code=0), False, id="a-success-is-no-failure"),
        pytest.param(on_codes("In", 1, containerName="c"), make_pod(), True, id="of-this-container"),
        pytest.param(on_codes("In", 1, containerName="d"), make_pod(), False, id="of-another-container"),
        pytest.param(ON_TARGET, make_pod(conditions=(TARGET,)), True, id="condition"),
        pytest.param(
            ON_TARGET, make_pod(conditions=({**TARGET, "status": "False"},)), False, id="condition-not-so"
        ),
        pytest.param(
            ON_TARGET, make_pod(phase="Running", conditions=(TARGET,)), False, id="has-not-failed-yet"
        ),
    ],
)
def test_rules(rule: Object, pod: Object, met: bool) -> None:
    job = make_job(podFailurePolicy={"rules": [rule]})
    assert (meaning_of_failure(job, pod).action == "Ignore") is met


def test_the_first_rule_that_is_met_counts() -> None:
    rules = [on_codes("In", 9), {**on_codes("In", 1), "action": "Count"}, on_codes("In", 1)]
    meaning = meaning_of_failure(make_job(podFailurePolicy={"rules": rules}), make_pod())
    assert meaning.action == COUNT
    assert meaning.message == (
        "Container c for pod ml/p failed with exit code 1 matching Count rule at index 1"
    )


def test_without_a_policy_a_failure_counts() -> None:
    assert meaning_of_failure(make_job(), make_pod()) == (COUNT, "")


def test_failures_of_an_index_add_up_and_ignored_ones_do_not() -> None:
    ignoring = make_job(podFailurePolicy={"rules": [on_codes("In", 7)]})
    assert failures_so_far(make_job(), []) == 0
    assert failures_so_far(make_job(), [make_pod(failures=0), make_pod(failures=1)]) == 2
    assert failures_so_far(make_job(), [make_pod(phase="Running", failures=4)]) == 0
    assert failures_so_far(ignoring, [make_pod(code=7, failures=4), make_pod(code=1)]) == 1


@pytest.mark.parametrize(
    ("rules", "listed", "done", "met"),
    [
        pytest.param([], {}, {0, 1}, None, id="no-policy"),
        pytest.param([{"succeededCount": 2}], {}, {0}, None, id="too-few"),
        pytest.param([{"succeededCount": 2}], {}, {0, 3}, 0, id="enough-of-any"),
        pytest.param([{}], {0: {0, 1}}, {0, 2}, None, id="not-all-of-those-named"),
        pytest.param([{}], {0: {0, 1}}, {0, 1}, 0, id="all-of-those-named"),
        pytest.param([{"succeededCount": 1}], {0: {5}}, {0}, None, id="none-of-those-named"),
        pytest.param([{"succeededCount": 9}, {"succeededCount": 1}], {}, {0}, 1, id="the-second-rule"),
    ],
)
def test_success_rules(
    rules: list[Object], listed: dict[int, set[int]], done: set[int], met: int | None
) -> None:
    job = make_job(completions=9, successPolicy={"rules": rules})
    assert find_success_rule(job, done, listed) == met
