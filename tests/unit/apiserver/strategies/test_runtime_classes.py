"""Runtime classes, and what pods get from theirs."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import CONTAINER, PODS, FullServer

from muster.apiserver.kinds import Object

RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
TOLERATION: Object = {"key": "boxed", "operator": "Exists"}


def make_server(**scheduling: Any) -> FullServer:
    server = FullServer()
    server.create(
        RUNTIMES, "boxed", handler="box", overhead={"podFixed": {"cpu": "1"}}, scheduling=scheduling
    )
    return server


def test_a_pod_gets_the_overhead_of_its_class() -> None:
    assert make_server().pod("p", runtimeClassName="boxed")["spec"]["overhead"] == {"cpu": "1"}


def test_a_pod_may_say_the_overhead_of_its_class_itself() -> None:
    made = make_server().pod("p", runtimeClassName="boxed", overhead={"cpu": "1000m"})
    assert made["spec"]["overhead"] == {"cpu": "1"}


def test_a_pod_is_placed_as_its_class_wants() -> None:
    server = make_server(nodeSelector={"runtime": "box"}, tolerations=[TOLERATION])
    spec = server.pod("p", runtimeClassName="boxed", nodeSelector={"pool": "a"})["spec"]
    assert spec["nodeSelector"] == {"pool": "a", "runtime": "box"}
    assert TOLERATION in spec["tolerations"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"overhead": {"cpu": "2"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"nodeSelector": {"runtime": "other"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = box; "
            "pod.spec.nodeSelector[runtime] = other",
            id="another node",
        ),
    ],
)
def test_a_pod_that_contradicts_its_class_is_refused(spec: Object, why: str) -> None:
    server = make_server(nodeSelector={"runtime": "box"})
    body = {
        "metadata": {"name": "p"},
        "spec": {"containers": [CONTAINER], "runtimeClassName": "boxed", **spec},
    }
    assert server.refusal("POST", PODS, body) == (403, f'pods "p" is forbidden: {why}')


def test_a_handler_is_a_label_and_stays() -> None:
    server = make_server()
    assert server.create_faults(RUNTIMES, handler="Not A Label")[0].startswith("handler: Invalid value")
    assert server.change(RUNTIMES, "boxed", metadata={"labels": {"a": "b"}})["handler"] == "box"
    code, why = server.refusal(
        "PUT", f"{RUNTIMES}/boxed", {"metadata": {"name": "boxed"}, "handler": "other"}
    )
    assert (code, 'handler: Invalid value: "other": field is immutable' in why) == (422, True)


def test_the_table_shows_the_handler() -> None:
    assert make_server().table(RUNTIMES) == [["boxed", "box", "0s"]]
