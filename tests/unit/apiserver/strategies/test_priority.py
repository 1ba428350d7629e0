"""PriorityClass and the admission by priority."""

import pytest
from tests.unit.apiserver.strategies.full_server import CLASSES, CONTAINER, PODS, FullServer


def refusal(server: FullServer, **spec: object) -> str:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}}
    code, message = server.refusal("POST", PODS, body)
    assert code == 403
    return message


def test_a_class_gives_a_pod_its_number() -> None:
    server = FullServer()
    server.create(CLASSES, "hi", value=1000)
    assert server.pod("p", priorityClassName="hi")["spec"]["priority"] == 1000


def test_without_class_the_global_default_counts_else_zero() -> None:
    server = FullServer()
    assert server.pod("p")["spec"]["priority"] == 0
    server.create(CLASSES, "usual", value=7, globalDefault=True)
    spec = server.pod("q")["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (7, "usual")


def test_a_number_of_ones_own_is_refused() -> None:
    server = FullServer()
    assert refusal(server, priority=5) == (
        'pods "p" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority '
        "admission controller computed 0 from the given PriorityClass name"
    )
    assert refusal(server, priorityClassName="nope").endswith("no PriorityClass with name nope was found")


def test_there_is_one_global_default() -> None:
    server = FullServer()
    server.create(CLASSES, "a", value=1, globalDefault=True)
    server.create(CLASSES, "b", value=2)
    body = {"metadata": {"name": "c"}, "value": 1, "globalDefault": True}
    text = "PriorityClass a is already marked as default. Only one default can exist"
    assert server.refusal("POST", CLASSES, body)[1].endswith(text)
    assert server.change(CLASSES, "a", description="still the default")["globalDefault"]


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        pytest.param(
            "high",
            1_000_000_001,
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            id="too high",
        ),
        pytest.param(
            "system-x",
            5,
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system "
            "use "
            "only. error: system-x is not a known system priority class",
            id="a system name",
        ),
    ],
)
def test_a_bad_class_is_refused(name: str, value: int, fault: str) -> None:
    assert FullServer().create_faults(CLASSES, metadata={"name": name}, value=value) == [fault]


def test_value_and_policy_are_fixed() -> None:
    server = FullServer()
    server.create(CLASSES, "a", value=1)
    assert server.change_faults(CLASSES, "a", value=2, preemptionPolicy="Never") == [
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "Never": field is immutable',
    ]


def test_the_classes_of_the_system_are_there_and_stay() -> None:
    server = FullServer()
    assert server.object("GET", f"{CLASSES}/system-node-critical")["value"] == 2_000_001_000
    code, message = server.refusal("DELETE", f"{CLASSES}/system-node-critical")
    assert code == 403
    assert message.endswith("this is a system priority class and cannot be deleted")
