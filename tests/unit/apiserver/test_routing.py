"""From paths to what they name."""

import pytest
from tests.unit.apiserver.small_server import KINDS

from muster.apiserver.kinds import Refused
from muster.apiserver.routing import Catalog, Route, verb_of, version_order

CATALOG = Catalog(KINDS)


def route(path: str) -> Route:
    found = CATALOG.route([part for part in path.split("/") if part])
    assert found is not None
    return found


def test_a_path_names_kind_version_namespace_name_and_subresource() -> None:
    found = route("/apis/scheduling.k8s.io/v1alpha3/namespaces/n/podgroups/g/status")
    assert (found.kind.kind, found.version, found.namespace, found.name) == ("PodGroup", "v1alpha3", "n", "g")
    assert found.sub is not None
    assert found.sub.name == "status"


def test_a_namespace_is_an_object_and_a_place() -> None:
    assert route("/api/v1/namespaces/n").kind.kind == "Namespace"
    assert route("/api/v1/namespaces/n/pods").kind.kind == "Pod"


def test_the_old_watch_form_is_known() -> None:
    found = route("/api/v1/watch/namespaces/n/pods")
    assert found.watched
    assert verb_of(found, "GET", watch=False) == "watch"


def test_one_object_is_not_watched_by_its_own_path() -> None:
    assert verb_of(route("/api/v1/namespaces/n/pods/p"), "GET", watch=True) == "get"
    assert verb_of(route("/api/v1/namespaces/n/pods"), "GET", watch=True) == "watch"


def test_a_path_of_a_group_that_is_not_served_is_nobodys() -> None:
    assert CATALOG.route(["apis", "nope.example.com", "v1", "things"]) is None


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/api/v1/namespaces/n/nopes", id="resource"),
        pytest.param("/api/v1/namespaces/n/pods/p/nope", id="subresource"),
        pytest.param("/api/v1/pods/p", id="name without namespace"),
        pytest.param("/api/v1/namespaces/n/nodes", id="namespace for a kind without"),
        pytest.param("/apis/batch/v9/namespaces/n/jobs", id="version"),
        pytest.param("/api/v1/namespaces/n/pods/a/b/c", id="too long"),
    ],
)
def test_what_a_served_group_does_not_have_is_404(path: str) -> None:
    with pytest.raises(Refused, match="the server could not find the requested resource"):
        route(path)


@pytest.mark.parametrize(
    ("path", "method", "verb"),
    [
        pytest.param("/api/v1/pods", "GET", "list", id="list everywhere"),
        pytest.param("/api/v1/namespaces/n/pods", "POST", "create", id="create"),
        pytest.param("/api/v1/namespaces/n/pods", "DELETE", "deletecollection", id="collection"),
        pytest.param("/api/v1/namespaces/n/pods/p", "PATCH", "patch", id="patch"),
        pytest.param("/api/v1/nodes/n/status", "PUT", "update", id="subresource"),
    ],
)
def test_a_method_is_a_verb(path: str, method: str, verb: str) -> None:
    assert verb_of(route(path), method, watch=False) == verb


@pytest.mark.parametrize(
    ("path", "method"),
    [
        pytest.param("/api/v1/pods", "DELETE", id="a collection of all namespaces"),
        pytest.param("/api/v1/pods", "POST", id="creation without namespace"),
        pytest.param("/api/v1/namespaces/n/pods", "PUT", id="put to a collection"),
        pytest.param("/api/v1/namespaces/n/pods/p", "POST", id="post to an object"),
        pytest.param("/api/v1/nodes/n/status", "POST", id="post to a status"),
        pytest.param("/api/v1/namespaces/n/pods", "FROB", id="no method at all"),
        pytest.param("/api/v1/watch/namespaces/n/pods", "POST", id="post to the old watch form"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_405(path: str, method: str) -> None:
    with pytest.raises(Refused) as caught:
        verb_of(route(path), method, watch=False)
    assert caught.value.code == 405


def test_versions_are_stable_first_then_beta_then_alpha_newest_first() -> None:
    given = ["v1alpha3", "v1", "v1beta1", "v2", "v1alpha10", "v1beta2"]
    assert sorted(given, key=version_order) == ["v2", "v1", "v1beta2", "v1beta1", "v1alpha10", "v1alpha3"]
