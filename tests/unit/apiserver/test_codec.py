"""Decoding by schema: what Go would print, and Go's words for what does not fit."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.apiserver.codec import DecodeError, Reading, decode, zero_of
from muster.apiserver.gojson import parse
from muster.apiserver.schemas import load_schemas

SCHEMAS = load_schemas()


def decoded(type_: str, value: dict[str, Any]) -> dict[str, Any]:
    return decode(SCHEMAS.record(type_), value, Reading())


def test_zero_values_of_omitempty_fields_are_dropped() -> None:
    value = {"name": "c", "image": "", "tty": False, "args": [], "env": None}
    assert decoded("core.v1/Container", value) == {"name": "c", "resources": {}}


def test_fields_that_go_always_prints_are_filled_in() -> None:
    assert decoded("core.v1/PodCondition", {"type": "Ready"}) == {
        "type": "Ready",
        "status": "",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


def test_quantities_and_times_become_canonical() -> None:
    assert decoded("core.v1/ResourceRequirements", {"limits": {"cpu": 2, "memory": "1024Mi"}}) == {
        "limits": {"cpu": "2", "memory": "1Gi"}
    }
    condition = decoded("core.v1/PodCondition", {"lastProbeTime": "2026-01-01T02:00:00.7+02:00"})
    assert condition["lastProbeTime"] == "2026-01-01T00:00:00Z"
    lease = decoded("coordination.v1/LeaseSpec", {"renewTime": "2026-01-01T00:00:00.500000Z"})
    assert lease["renewTime"] == "2026-01-01T00:00:00.500000Z"


def test_an_early_year_keeps_four_digits_and_the_first_moment_of_all_is_no_time() -> None:
    condition = decoded("core.v1/PodCondition", {"lastProbeTime": "0999-01-01T02:00:00+02:00"})
    assert condition["lastProbeTime"] == "0999-01-01T00:00:00Z"
    condition = decoded("core.v1/PodCondition", {"lastProbeTime": "0001-01-01T00:00:00Z"})
    assert condition["lastProbeTime"] is None


def test_the_result_shares_nothing_with_what_was_given() -> None:
    value = {"metadata": {"labels": {"a": "b"}}, "data": {"k": "v"}}
    out = decoded("core.v1/ConfigMap", value)
    out["metadata"]["labels"]["a"] = "c"
    out["data"]["k"] = "w"
    assert value == {"metadata": {"labels": {"a": "b"}}, "data": {"k": "v"}}


def test_unknown_and_doubled_fields_are_pruned_and_told_with_their_paths() -> None:
    document = parse(b'{"spec": {"foo": 1, "containers": [{"name": "c", "bar": 2, "name": "d"}]}}')
    reading = Reading(document.twice)
    out = decode(SCHEMAS.record("core.v1/Pod"), document.value, reading)
    assert out["spec"] == {"containers": [{"name": "d", "resources": {}}]}
    assert reading.faults == [
        'unknown field "spec.foo"',
        'unknown field "spec.containers[0].bar"',
        'duplicate field "spec.containers[0].name"',
    ]


def test_field_names_are_told_apart_by_case() -> None:
    reading = Reading()
    decode(SCHEMAS.record("core.v1/PodSpec"), {"NodeName": "n"}, reading)
    assert reading.faults == ['unknown field "NodeName"']


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": 5}]}},
            "json: cannot unmarshal number into Go struct field "
            "Container.spec.containers.name of type string",
            id="number for a word",
        ),
        pytest.param(
            {"spec": {"priority": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
            id="fraction",
        ),
        pytest.param(
            {"spec": {"priority": 1 << 31}},
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "PodSpec.spec.priority of type int32",
            id="beyond int32",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": True}}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            id="value of a map",
        ),
        pytest.param(
            {"spec": {"affinity": []}},
            "json: cannot unmarshal array into Go struct field PodSpec.spec.affinity of type v1.Affinity",
            id="list for an object",
        ),
        pytest.param(
            {"metadata": {"creationTimestamp": "soon"}},
            'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
            id="time",
        ),
        pytest.param(
            {"spec": {"overhead": {"cpu": True}}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="quantity",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_gos_words(value: dict[str, Any], why: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoded("core.v1/Pod", value)
    assert str(caught.value) == why


def test_a_null_in_a_list_is_the_zero_of_its_type() -> None:
    assert decoded("core.v1/Container", {"args": [None]})["args"] == [""]


def test_the_zero_of_a_record_is_what_go_prints_for_an_empty_one() -> None:
    assert zero_of(SCHEMAS.record("core.v1/Pod")) == {
        "metadata": {},
        "spec": {"containers": None},
        "status": {},
    }


RECORDED = Path(__file__).parents[2] / "conformance" / "recorded" / "answers.json"
MICRO_TIMES = ("eventTime", "renewTime", "acquireTime", "lastObservedTime")


def with_times(value: Any, name: str = "") -> Any:
    """A recorded value with times where the recording has placeholders."""
    if isinstance(value, dict):
        return {key: with_times(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [with_times(item, name) for item in value]
    if value == "<time>":
        return "2026-01-01T00:00:00.000000Z" if name in MICRO_TIMES else "2026-01-01T00:00:00Z"
    return value


def recorded_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects that the stock server answered with, whole, and the name of their schema."""
    for answer in json.loads(RECORDED.read_text()).values():
        obj = answer.get("object")
        if isinstance(obj, dict) and {"apiVersion", "kind", "metadata"} <= obj.keys():
            group, _, version = obj["apiVersion"].rpartition("/")
            type_ = f"{group.partition('.')[0] or 'core'}.{version}/{obj['kind']}"
            if SCHEMAS.has(type_):
                yield type_, with_times(obj)


def test_what_the_stock_server_printed_is_decoded_unchanged() -> None:
    count = 0
    for type_, obj in recorded_objects():
        reading = Reading()
        assert decode(SCHEMAS.record(type_), obj, reading) == obj
        assert reading.faults == []
        count += 1
    assert count > 50
