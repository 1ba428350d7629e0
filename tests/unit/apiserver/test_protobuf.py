"""Protobuf bodies, as kubectl sends them."""

import pytest

from muster.apiserver.protobuf import ProtobufError, decode_protobuf
from muster.apiserver.schemas import load_schemas

SCHEMAS = load_schemas()
PRIORITY_CLASS = bytes.fromhex(
    "6b3873000a250a147363686564756c696e672e6b38732e696f2f7631120d5072696f72697479436c61737312300a120a0268691200"
    "1a0022002a003200380042001005180022002a14507265656d70744c6f7765725072696f726974791a002200"
)


def test_a_priority_class_is_read_by_its_field_numbers() -> None:
    value = decode_protobuf(SCHEMAS.record("scheduling.v1/PriorityClass"), PRIORITY_CLASS)
    assert value["apiVersion"] == "scheduling.k8s.io/v1"
    assert value["kind"] == "PriorityClass"
    assert value["metadata"]["name"] == "hi"
    assert value["value"] == 5
    assert value["preemptionPolicy"] == "PreemptLowerPriority"


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def enveloped(message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, b"v1") + field(2, b"X")) + field(2, message)


def test_maps_lists_times_and_quantities_are_read() -> None:
    labels = field(11, field(1, b"a") + field(2, b"b"))
    times = field(8, bytes([1 << 3, 60]))
    limits = field(1, field(1, b"cpu") + field(2, field(1, b"1")))
    containers = field(2, field(1, b"c") + field(8, limits)) + field(2, field(1, b"d"))
    value = decode_protobuf(
        SCHEMAS.record("core.v1/Pod"), enveloped(field(1, labels + times) + field(2, containers))
    )
    assert value["metadata"] == {"labels": {"a": "b"}, "creationTimestamp": "1970-01-01T00:01:00Z"}
    assert value["spec"]["containers"] == [
        {"name": "c", "resources": {"limits": {"cpu": "1"}}},
        {"name": "d"},
    ]


def varint(number: int) -> bytes:
    rest, out = number % (1 << 64), b""
    while rest > 127:
        out, rest = out + bytes([rest & 127 | 128]), rest >> 7
    return out + bytes([rest])


# What kube-apiserver 1.37.2 makes of these: nanoseconds are an int32, and cut to microseconds towards zero.
@pytest.mark.parametrize(
    ("seconds", "nanos", "renewed"),
    [
        pytest.param(60, 1_999_999_999, "1970-01-01T00:01:01.999999Z", id="more than a second"),
        pytest.param(0, -1_500, "1969-12-31T23:59:59.999999Z", id="before the second"),
        pytest.param(0, -1, "1970-01-01T00:00:00.000000Z", id="less than a microsecond before"),
        pytest.param(0, 1 << 31, "1969-12-31T23:59:57.852517Z", id="beyond an int32"),
        pytest.param(-40_000_000_000, 0, "0702-06-15T00:53:20.000000Z", id="a year below 1000"),
        pytest.param(-62_135_596_800, 0, None, id="the first moment of year 1"),
    ],
)
def test_times_of_any_fraction_and_year_are_read(seconds: int, nanos: int, renewed: str | None) -> None:
    time = bytes([1 << 3]) + varint(seconds) + bytes([2 << 3]) + varint(nanos)
    lease = decode_protobuf(SCHEMAS.record("coordination.v1/Lease"), enveloped(field(2, field(4, time))))
    assert lease["spec"]["renewTime"] == renewed


def test_a_time_of_whole_seconds_has_no_nanoseconds() -> None:
    time = bytes([1 << 3, 60, 2 << 3]) + varint(1_999_999_999)
    pod = decode_protobuf(SCHEMAS.record("core.v1/Pod"), enveloped(field(1, field(8, time))))
    assert pod["metadata"]["creationTimestamp"] == "1970-01-01T00:01:00Z"


def test_embedded_types_are_flat_as_in_json() -> None:
    volume = field(1, field(1, b"v") + field(2, field(2, field(1, b"Memory"))))
    value = decode_protobuf(SCHEMAS.record("core.v1/Pod"), enveloped(field(2, volume)))
    assert value["spec"]["volumes"] == [{"name": "v", "emptyDir": {"medium": "Memory"}}]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"hello", "does not appear to be a protobuf message", id="no prefix"),
        pytest.param(b"k8s\x00\x0a\xff", "unexpected EOF", id="cut off"),
        pytest.param(PRIORITY_CLASS[:60], "unexpected EOF", id="cut off inside"),
        pytest.param(b"k8s\x00\x0b", "illegal wireType 3", id="a group"),
    ],
)
def test_what_is_no_message_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(ProtobufError, match=why):
        decode_protobuf(SCHEMAS.record("scheduling.v1/PriorityClass"), body)
