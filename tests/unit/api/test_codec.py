"""Decoding objects: paths in errors, nulls as in Go."""

import pytest

from muster.api.codec import decode_object
from muster.api.core import Pod
from muster.base.errors import ObjectInvalid


def test_text_and_plain_objects_are_read_alike() -> None:
    plain = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "unknown": 1}}
    assert decode_object(plain, Pod) == decode_object(
        b'{"metadata":{"name":"p"},"spec":{"nodeName":"n1"}}', Pod
    )


def test_a_null_is_an_absent_field() -> None:
    raw = b'{"metadata":{"name":null},"spec":{"containers":[{"name":"c","ports":null,"image":null}]}}'
    pod = decode_object(raw, Pod)
    assert (pod.metadata.name, pod.spec.containers[0].image) == ("", "")


def test_a_wrong_type_names_its_path() -> None:
    with pytest.raises(ObjectInvalid, match=r"Pod: .*\$\.spec\.nodeName"):
        decode_object({"metadata": {}, "spec": {"nodeName": 5}}, Pod)


def test_a_wrong_type_beside_a_null_names_its_path() -> None:
    with pytest.raises(ObjectInvalid, match=r"\$\.spec\.nodeName"):
        decode_object({"metadata": {"name": None}, "spec": {"nodeName": 5}}, Pod)


def test_broken_text_is_refused() -> None:
    with pytest.raises(ObjectInvalid, match="Pod: "):
        decode_object(b'{"metadata":', Pod)
