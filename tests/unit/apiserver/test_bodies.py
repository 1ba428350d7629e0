"""Bodies as objects, whatever they are written in."""

import pytest
from tests.unit.apiserver.small_server import GROUPS, MAPS, PODS, SmallServer


@pytest.fixture
def server() -> SmallServer:
    return SmallServer()


def test_kind_and_version_may_be_left_out(server: SmallServer) -> None:
    obj = server.object("POST", MAPS, {"metadata": {"name": "a"}})
    assert (obj["kind"], obj["apiVersion"]) == ("ConfigMap", "v1")


def test_yaml_is_taken_and_its_dates_stay_text(server: SmallServer) -> None:
    body = b"metadata: {name: y, annotations: {day: 2026-01-01}}\ndata: {k: v}\n"
    obj = server.object("POST", MAPS, body, content="application/yaml")
    assert obj["metadata"]["annotations"] == {"day": "2026-01-01"}


def test_aliases_stand_for_what_they_name_but_not_for_ever(server: SmallServer) -> None:
    body = b"metadata: {name: y}\ndata: &d {k: v}\nbinaryData: {}\nfoo: *d\n"
    assert server.object("POST", MAPS, body, content="application/yaml")["data"] == {"k": "v"}
    letters = "bcdefghij"
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{name}: &{name} [{','.join([f'*{chr(ord(name) - 1)}'] * 10)}]" for name in letters]
    code, message = server.refusal("POST", MAPS, "\n".join(lines).encode(), content="application/yaml")
    assert code == 400
    assert "excessive aliasing" in message
    assert server.refusal("POST", MAPS, b"a: &a [*a]", content="application/yaml")[0] == 400


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b'{"metadata": ', 'unexpected end of JSON input ({"metadata": )', id="cut off"),
        pytest.param(b"", "unexpected end of JSON input (<empty>)", id="nothing"),
        pytest.param(b"[]", "(5b5d)", id="a list"),
        pytest.param(b'{"kind": 5}', "Go struct field .kind of type string", id="kind is no word"),
        pytest.param(b'"' + b"x" * 100 + b'" y', " ...)", id="a long one is cut"),
    ],
)
def test_a_body_that_is_no_object_is_refused(server: SmallServer, body: bytes, why: str) -> None:
    code, message = server.refusal("POST", MAPS, body)
    assert code == 400
    assert message.startswith("the object provided is unrecognized (must be of type ConfigMap)")
    assert why in message


def test_a_type_that_is_not_understood_is_415(server: SmallServer) -> None:
    assert server.refusal("POST", MAPS, b"hello", content="text/plain")[0] == 415


def test_another_version_of_the_kind_is_told_apart_from_another_kind(server: SmallServer) -> None:
    spec = {"schedulingPolicy": {"basic": {}}}
    other = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": spec,
    }
    assert (
        "does not match the expected API version (scheduling.k8s.io/v1beta1)"
        in server.refusal("POST", GROUPS, other)[1]
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "g"}}
    assert server.refusal("POST", GROUPS, pod)[1] == (
        'Pod in version "v1" cannot be handled as a PodGroup: '
        "converting (v1.Pod) to (scheduling.PodGroup): unknown conversion"
    )
    unknown = {"apiVersion": "v1", "kind": "Nope", "metadata": {"name": "g"}}
    assert 'no kind "Nope" is registered for version "v1"' in server.refusal("POST", GROUPS, unknown)[1]


def test_unknown_fields_warn_refuse_or_are_nothing(server: SmallServer) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"containers": [], "foo": 1}}
    warned = server.ask("POST", f"{PODS}?dryRun=All", body)
    assert warned.headers == (("Warning", '299 - "unknown field \\"spec.foo\\""'),)
    assert server.ask("POST", f"{PODS}?dryRun=All&fieldValidation=Ignore", body).headers == ()
    assert server.refusal("POST", f"{PODS}?fieldValidation=Strict", body) == (
        400,
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo"',
    )


@pytest.mark.parametrize("content", ["application/json; ;", "application/json; charset", "json", "a b/c"])
def test_a_type_that_is_none_is_415_and_has_no_details(server: SmallServer, content: str) -> None:
    response = server.ask("POST", MAPS, {"metadata": {"name": "b"}}, content=content)
    assert response.object is not None
    assert (response.status, "details" in response.object) == (415, False)


@pytest.mark.parametrize(
    "content", ["application/json;", 'application/json; charset="utf-8"', " application/json "]
)
def test_a_type_may_have_parameters(server: SmallServer, content: str) -> None:
    assert server.ask("POST", MAPS, {"metadata": {"name": "b"}}, content=content).status == 201


@pytest.mark.parametrize("rest", [b"---\nmetadata: {name: c}\n", b"---\n[\n", b"...\n"])
def test_of_several_yaml_documents_the_first_counts(server: SmallServer, rest: bytes) -> None:
    made = server.object("POST", MAPS, b"metadata: {name: b}\n" + rest, content="application/yaml")
    assert made["metadata"]["name"] == "b"
