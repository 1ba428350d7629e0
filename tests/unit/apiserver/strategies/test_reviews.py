"""Who am I, and what may I."""

from typing import Any

from tests.unit.apiserver.strategies.full_server import FullServer

from muster.apiserver.kinds import Object

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
MAY = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


def ask(path: str, **body: Any) -> Object:
    return FullServer().object("POST", path, body)


def test_a_user_learns_its_name_and_groups() -> None:
    assert ask(WHO)["status"]["userInfo"] == {
        "username": "system:admin",
        "groups": ["system:masters", "system:authenticated"],
    }


def test_masters_may_do_everything() -> None:
    attributes = {"verb": "create", "resource": "podgroups", "group": "scheduling.k8s.io"}
    answer = ask(MAY, spec={"resourceAttributes": attributes})
    assert (answer["status"], answer["spec"]["resourceAttributes"]) == ({"allowed": True}, attributes)


def test_somebody_else_may_nothing() -> None:
    body = {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}
    answer = FullServer().object("POST", MAY, body, impersonate_user="jane")
    assert answer["status"] == {"allowed": False}


def test_one_question_at_a_time() -> None:
    code, message = FullServer().refusal("POST", MAY, {"spec": {}})
    assert code == 422
    assert message.endswith("exactly one of nonResourceAttributes or resourceAttributes must be specified")


def test_rules_are_told_for_a_namespace() -> None:
    rules = ask(RULES, spec={"namespace": "default"})["status"]["resourceRules"]
    assert rules[0] == {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert FullServer().refusal("POST", RULES, {"spec": {}}) == (400, "no namespace on request")
