"""Status objects."""

from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.kinds import Cause, Refused
from muster.apiserver.statuses import PageExpired, conflict, invalid, not_found, status_of, success

GROUPS = next(kind for kind in KINDS if kind.kind == "PodGroup")


def test_a_refusal_becomes_a_status_with_its_code_and_words() -> None:
    assert status_of(not_found(GROUPS, "g")) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'podgroups.scheduling.k8s.io "g" not found',
        "reason": "NotFound",
        "details": {"name": "g", "group": "scheduling.k8s.io", "kind": "podgroups"},
        "code": 404,
    }


def test_a_refusal_without_reason_and_details_has_neither() -> None:
    status = status_of(Refused("no", code=500, reason=""))
    assert status.keys() == {"kind", "apiVersion", "metadata", "status", "message", "code"}


def test_one_field_error_stands_alone_and_several_in_brackets() -> None:
    one, two = Cause("a", "FieldValueRequired", "Required value"), Cause("b", "FieldValueInvalid", "bad")
    assert invalid("g", "K", "n", [one]).message == 'K.g "n" is invalid: a: Required value'
    assert invalid("", "K", "n", [one, two]).message == 'K "n" is invalid: [a: Required value, b: bad]'


def test_a_failed_precondition_names_the_kind() -> None:
    refused = conflict(GROUPS, "g", "why", by_kind=True)
    assert refused.message == 'Operation cannot be fulfilled on PodGroup.scheduling.k8s.io "g": why'
    assert refused.details == {"name": "g", "group": "scheduling.k8s.io", "kind": "PodGroup"}


def test_an_expired_page_says_how_to_go_on() -> None:
    assert status_of(PageExpired("old", "token"))["metadata"] == {"continue": "token"}


def test_a_success_has_a_code_or_details() -> None:
    assert success(201)["code"] == 201
    assert "code" not in success(200, {"name": "x"})
