"""Annotations about GPUs: what is read, what is refused and how it is said."""

import pytest

from muster.cluster.gpu_annotations import (
    GPU_INDEX,
    GPU_MILLI,
    find_faults,
    index_annotation,
    indices_of,
    milli_of,
)
from muster.testing.builders import make_pod


@pytest.mark.parametrize(("text", "milli"), [("1", 1), ("460", 460), (" 1000 ", 1000), ("0500", 500)])
def test_thousandths_are_whole_numbers_up_to_a_device(text: str, milli: int) -> None:
    pod = make_pod(annotations={GPU_MILLI: text})
    assert milli_of(pod) == milli
    assert not list(find_faults(pod, 1))


@pytest.mark.parametrize("text", ["", "0", "1001", "-5", "0.5", "500m", "half", "٣"])
def test_what_is_no_such_number_is_refused_with_the_cure(text: str) -> None:
    pod = make_pod(annotations={GPU_MILLI: text})
    assert milli_of(pod) is None
    ((field, why),) = find_faults(pod, 1)
    assert field == "metadata.annotations[muster.dev/gpu-milli]"
    assert "half a device is 500" in why


def test_a_part_of_several_devices_is_refused() -> None:
    pod = make_pod(annotations={GPU_MILLI: "500"})
    ((_, why),) = find_faults(pod, 2)
    assert "ask for 1 or none of it" in why


def test_whole_devices_may_be_several() -> None:
    assert not list(find_faults(make_pod(annotations={GPU_MILLI: "1000"}), 4))


def test_a_pod_that_waits_may_not_say_its_devices() -> None:
    ((field, _),) = find_faults(make_pod(annotations={GPU_INDEX: "0"}), 1)
    assert field == "metadata.annotations[muster.dev/gpu-index]"
    assert not list(find_faults(make_pod(annotations={GPU_INDEX: "0"}, node="n1"), 1))


@pytest.mark.parametrize(
    ("text", "devices"), [("0", (0,)), ("3,1", (1, 3)), ("1,1", (1,)), ("", ()), ("a", ()), ("1,-2", ())]
)
def test_devices_are_read_from_the_binding_s_annotation(text: str, devices: tuple[int, ...]) -> None:
    assert indices_of(make_pod(annotations={GPU_INDEX: text})) == devices


def test_devices_are_written_as_they_are_read() -> None:
    assert indices_of(make_pod(annotations=index_annotation((0, 5)))) == (0, 5)
