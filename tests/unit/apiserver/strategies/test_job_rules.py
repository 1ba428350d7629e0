"""What a Job's spec must be."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import CONTAINER, JOBS, FullServer

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.job_rules import validate_indexes

TEMPLATE: Object = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}


def faults(**spec: Any) -> list[str]:
    return FullServer().create_faults(JOBS, spec={"template": TEMPLATE, **spec})


def scheduling(**part: Any) -> Object:
    return {"scheduling": part}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"parallelism": -1},
            "parallelism: Invalid value: -1: must be greater than or equal to 0",
            id="negative",
        ),
        pytest.param(
            {"managedBy": "bad"},
            'managedBy: Invalid value: "bad": must be a domain-prefixed path (such as "acme.io/foo")',
            id="manager",
        ),
        pytest.param(
            {"completionMode": "Indexed", "parallelism": 3},
            "completions: Required value: when completion mode is Indexed",
            id="indexed without end",
        ),
        pytest.param(
            {"backoffLimitPerIndex": 1},
            "backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
            id="a limit for each index of none",
        ),
        pytest.param(
            {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}},
            "template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            id="a selector of others",
        ),
    ],
)
def test_a_bad_job_is_refused(spec: Object, fault: str) -> None:
    assert faults(**spec) == [f"spec.{fault}"]


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"parallelism": 4, **scheduling(schedulingPolicy={"gang": {"minCount": 5}})},
            "schedulingPolicy.gang.minCount: Invalid value: 5: must not be greater than parallelism (4)",
            id="a gang larger than the job",
        ),
        pytest.param(
            scheduling(schedulingPolicy={"gang": {"minCount": 0}}),
            "schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
            id="a gang of none",
        ),
        pytest.param(
            scheduling(schedulingPolicy={}),
            'schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`',
            id="no policy",
        ),
        pytest.param(
            scheduling(disruptionMode={"all": {}}),
            'disruptionMode: Invalid value: "": the disruptionMode `all` is not supported with the Basic '
            "scheduling policy",
            id="all of no gang",
        ),
        pytest.param(
            scheduling(schedulingConstraints={"topology": [{"key": ""}]}),
            "schedulingConstraints.topology[0].key: Required value",
            id="no topology key",
        ),
    ],
)
def test_a_bad_gang_job_is_refused(spec: Object, fault: str) -> None:
    assert faults(**spec) == [f"spec.scheduling.{fault}"]


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        pytest.param("Always", 'Required value: valid values: "OnFailure", "Never"', id="for ever"),
        pytest.param(
            "OnFailure",
            'Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
            id="restarts hide failures",
        ),
    ],
)
def test_pods_of_a_job_end(policy: str, fault: str) -> None:
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": policy}}
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    more = {"podFailurePolicy": {"rules": [rule]}} if policy == "OnFailure" else {}
    assert faults(template=template, **more) == [f"spec.template.spec.restartPolicy: {fault}"]


def test_an_exit_code_of_zero_is_no_failure() -> None:
    rule = {"action": "X", "onExitCodes": {"operator": "In", "values": [0, 0]}}
    found = faults(podFailurePolicy={"rules": [rule, {"action": "Ignore"}]})
    assert [fault.split(": ")[0].rsplit(".", 1)[-1] for fault in found] == [
        "action",
        "values[0]",
        "values[1]",
        "values[1]",
        "rules[1]",
    ]


def test_a_success_policy_needs_indexes() -> None:
    assert faults(successPolicy={"rules": [{"succeededCount": 1}]})[0].endswith(
        "requires indexed completion mode"
    )
    rules = [{"succeededCount": 5}, {}]
    found = faults(completionMode="Indexed", completions=3, parallelism=3, successPolicy={"rules": rules})
    assert [fault.split(": ", 1)[1] for fault in found] == [
        "Invalid value: 5: must be less than or equal to 3 (the number of specified completions)",
        "Required value: at least one of succeededCount or succeededIndexes must be specified",
    ]


@pytest.mark.parametrize(
    ("indexes", "end"),
    [
        pytest.param("x", 'cannot convert string to integer for index: "x"', id="a word"),
        pytest.param("9", 'too large index: "9"', id="too large"),
        pytest.param("3,1", "non-increasing order, previous: 3, current: 1", id="order"),
    ],
)
def test_indexes_are_rising_numbers(indexes: str, end: str) -> None:
    [cause] = validate_indexes("s.completedIndexes", indexes, 5)
    assert cause.message.endswith(f"error parsing completedIndexes: {end}")
    assert validate_indexes("s.completedIndexes", "0,2-4", 5) == []
