"""Forms of answers: objects, tables, metadata, YAML."""

import pytest
import yaml
from tests.unit.apiserver.small_server import MAPS, MERGE_PATCH, METADATA, TABLE, SmallServer


@pytest.fixture
def server() -> SmallServer:
    server = SmallServer()
    server.create_map("a", {"k": "v"})
    server.create_map("b")
    return server


def test_a_list_as_a_table_has_a_row_for_each_object(server: SmallServer) -> None:
    server.now_s += 125
    table = server.object("GET", MAPS, accept=TABLE)
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Age"]
    assert [row["cells"] for row in table["rows"]] == [["a", "2m5s"], ["b", "2m5s"]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"] == {"resourceVersion": str(server.store.revision)}


def test_a_table_carries_whole_objects_or_none_when_asked(server: SmallServer) -> None:
    whole = server.object("GET", f"{MAPS}/a?includeObject=Object", accept=TABLE)["rows"][0]["object"]
    assert (whole["kind"], whole["data"]) == ("ConfigMap", {"k": "v"})
    assert server.object("GET", f"{MAPS}/a?includeObject=None", accept=TABLE)["rows"][0]["object"] is None
    assert server.refusal("GET", f"{MAPS}/a?includeObject=Half", accept=TABLE)[0] == 400


def test_metadata_can_be_had_alone(server: SmallServer) -> None:
    assert server.object("GET", f"{MAPS}/a", accept=METADATA).keys() == {"kind", "apiVersion", "metadata"}
    listed = server.object("GET", MAPS, accept=METADATA.replace("Metadata;", "MetadataList;"))
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["kind"] for item in listed["items"]] == ["PartialObjectMetadata"] * 2


def test_metadata_of_a_list_is_not_that_of_one_object(server: SmallServer) -> None:
    assert server.refusal("GET", MAPS, accept=METADATA) == (
        406,
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
    )
    assert server.refusal("GET", f"{MAPS}/a", accept=METADATA.replace("Metadata;", "MetadataList;"))[0] == 406


def test_a_write_is_answered_in_the_form_asked_for(server: SmallServer) -> None:
    patch = {"metadata": {"labels": {"x": "y"}}}
    answer = server.object("PATCH", f"{MAPS}/a", patch, content=MERGE_PATCH, accept=METADATA)
    assert answer["metadata"]["labels"] == {"x": "y"}
    assert "data" not in answer


def test_yaml_is_given_when_wanted(server: SmallServer) -> None:
    response = server.ask("GET", f"{MAPS}/a", accept="application/yaml")
    assert response.content_type == "application/yaml"
    assert response.raw is not None
    assert yaml.safe_load(response.raw)["data"] == {"k": "v"}


def test_pretty_json_has_lines(server: SmallServer) -> None:
    response = server.ask("GET", f"{MAPS}/a?pretty=true")
    assert response.raw is not None
    assert response.raw.startswith(b'{\n  "kind": "ConfigMap"')


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("*/*", id="anything"),
        pytest.param("application/cbor,application/json", id="a second choice"),
        pytest.param("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", id="no such table"),
        pytest.param("application/yaml;q=0.5, application/json", id="by quality"),
    ],
)
def test_what_can_be_given_is_found_in_what_is_accepted(server: SmallServer, accept: str) -> None:
    response = server.ask("GET", f"{MAPS}/a", accept=accept)
    assert response.content_type == "application/json"
    assert response.object is not None
    assert response.object["kind"] == "ConfigMap"


def test_a_type_that_cannot_be_given_is_406(server: SmallServer) -> None:
    assert server.refusal("GET", f"{MAPS}/a", accept="text/plain")[0] == 406


def test_a_refusal_is_a_status_whatever_is_accepted(server: SmallServer) -> None:
    response = server.ask("GET", f"{MAPS}/nope", accept=TABLE)
    assert response.object is not None
    assert response.object["kind"] == "Status"


def test_half_a_wildcard_is_no_type_that_can_be_given(server: SmallServer) -> None:
    assert server.refusal("GET", f"{MAPS}/a", accept="application/*")[0] == 406
    assert server.ask("GET", f"{MAPS}/a", accept="application/*, */*").status == 200
