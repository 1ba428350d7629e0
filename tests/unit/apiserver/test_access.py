"""Who may ask what."""

import pytest
from tests.unit.apiserver.small_server import GROUPS, MAPS, SmallServer

from muster.apiserver.access import attributes_of, impersonated
from muster.apiserver.exchange import Request

JANE = {"user": "jane", "groups": ("system:authenticated",)}
NOBODY = {"user": "system:anonymous", "groups": ("system:unauthenticated",)}


@pytest.fixture
def server() -> SmallServer:
    return SmallServer()


@pytest.mark.parametrize(
    ("method", "path", "why"),
    [
        pytest.param(
            "GET",
            MAPS,
            'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" '
            'in the namespace "default"',
            id="list",
        ),
        pytest.param(
            "PATCH",
            f"{GROUPS}/g/status",
            'podgroups.scheduling.k8s.io "g" is forbidden: User "jane" cannot patch resource '
            '"podgroups/status" in API group "scheduling.k8s.io" in the namespace "default"',
            id="subresource",
        ),
        pytest.param(
            "GET",
            "/api/v1/nodes/n",
            'nodes "n" is forbidden: User "jane" cannot get resource "nodes" in API group "" '
            "at the cluster scope",
            id="cluster scope",
        ),
        pytest.param(
            "DELETE",
            "/api/v1/namespaces/default/nopes",
            'nopes is forbidden: User "jane" cannot deletecollection resource "nopes" in API group "" '
            'in the namespace "default"',
            id="before it is known whether it is there",
        ),
        pytest.param("GET", "/metrics", 'forbidden: User "jane" cannot get path "/metrics"', id="path"),
    ],
)
def test_a_user_without_rights_is_told_what_is_missing(
    server: SmallServer, method: str, path: str, why: str
) -> None:
    assert server.refusal(method, path, **JANE) == (403, why)


def test_everybody_may_see_version_and_health_and_users_what_is_served(server: SmallServer) -> None:
    assert server.ask("GET", "/version", **NOBODY).status == 200
    assert server.ask("GET", "/readyz", **NOBODY).status == 200
    assert server.ask("GET", "/apis", **JANE).status == 200
    assert server.ask("GET", "/apis", **NOBODY).status == 403
    assert server.ask("GET", MAPS, **NOBODY).status == 403


def test_an_administrator_may_ask_as_somebody_else(server: SmallServer) -> None:
    assert server.refusal("GET", MAPS, impersonate_user="jane")[0] == 403
    assert server.ask("GET", MAPS, impersonate_user="jane", impersonate_group="system:masters").status == 200


def test_nobody_else_may(server: SmallServer) -> None:
    code, message = server.refusal("GET", MAPS, impersonate_user="bob", **JANE)
    assert code == 403
    assert message.startswith('users "bob" is forbidden: User "jane" cannot impersonate')


def test_an_impersonated_user_is_authenticated() -> None:
    headers = {"impersonate-user": "jane", "impersonate-group": "dev,ops"}
    request = impersonated(Request("GET", "/", headers=headers))
    assert (request.user, request.groups) == ("jane", ("dev", "ops", "system:authenticated"))
    assert request.headers == {}


@pytest.mark.parametrize(
    ("method", "path", "query", "verb"),
    [
        pytest.param("GET", MAPS, (("watch", "1"),), "watch", id="watch"),
        pytest.param("GET", "/api/v1/watch/pods", (), "watch", id="old watch"),
        pytest.param("PATCH", f"{MAPS}/a", (), "patch", id="patch"),
        pytest.param("DELETE", f"{MAPS}/a", (), "delete", id="delete"),
        pytest.param("GET", "/api/v1/namespaces/n", (), "get", id="a namespace itself"),
    ],
)
def test_the_verb_is_told_from_the_request(
    method: str, path: str, query: tuple[tuple[str, str], ...], verb: str
) -> None:
    parts = [part for part in path.split("/") if part]
    assert attributes_of(Request(method, path, query), parts).verb == verb


def test_what_is_said_of_a_user_without_saying_whose_is_refused(server: SmallServer) -> None:
    code, message = server.refusal("GET", MAPS, impersonate_group="a,b")
    assert code == 400
    assert 'Groups:[]string{"a", "b"}' in message
    assert message.endswith("without impersonating a user name")
    assert server.refusal("GET", MAPS, impersonate_uid="u", impersonate_user="")[0] == 400
