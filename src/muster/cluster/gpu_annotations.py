"""What a pod says of GPUs beside its requests: the part of one device it takes, and which devices it got.

`muster.dev/gpu-milli` is the user's: thousandths of a device, 1 to 1000.  `muster.dev/gpu-index` is ours: the
numbers of the devices, written with the binding.  In come a pod's annotations; next: `requests.py`, which
counts, and `gpu_slots.py`, which keeps the books.
"""

from collections.abc import Iterator, Mapping

from muster.api.core import Pod

GPU = "nvidia.com/gpu"
GPU_MILLI = "muster.dev/gpu-milli"
GPU_INDEX = "muster.dev/gpu-index"
DEVICE_MILLI = 1000

_NONE: Mapping[str, str] = {}


def milli_of(pod: Pod) -> int | None:
    """Thousandths of each device, 1 to 1000; None where nothing, or nothing readable, is said."""
    text = (pod.metadata.annotations or _NONE).get(GPU_MILLI)
    return None if text is None else _read_milli(text)


def indices_of(pod: Pod) -> tuple[int, ...]:
    """The devices written with the binding, ascending; none where nothing, or nothing readable, is said."""
    text = (pod.metadata.annotations or _NONE).get(GPU_INDEX, "")
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        return ()
    return tuple(sorted({int(part) for part in parts}))


def index_annotation(devices: tuple[int, ...]) -> dict[str, str]:
    """The annotation that says these devices."""
    return {GPU_INDEX: ",".join(map(str, devices))}


def find_faults(pod: Pod, device_count: int) -> Iterator[tuple[str, str]]:
    """What is wrong with the annotations of a pod that waits: field, and why with the cure.

    `device_count` is how many whole GPUs its containers ask for.
    """
    annotations = pod.metadata.annotations or _NONE
    text = annotations.get(GPU_MILLI)
    if text is not None:
        milli = _read_milli(text)
        if milli is None:
            yield (
                f"metadata.annotations[{GPU_MILLI}]",
                f'"{text}" is no whole number from 1 to {DEVICE_MILLI}; half a device is 500',
            )
        elif milli < DEVICE_MILLI and device_count > 1:
            yield (
                f"metadata.annotations[{GPU_MILLI}]",
                f"a part can be had of one device only, and the containers ask for {device_count} of {GPU}; "
                f"ask for 1 or none of it, or take the annotation away for whole devices",
            )
    if GPU_INDEX in annotations and not pod.spec.node_name:
        yield (
            f"metadata.annotations[{GPU_INDEX}]",
            "is written by Muster with the binding; take it away from the pod or its template",
        )


def _read_milli(text: str) -> int | None:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        return None
    return int(text) if 1 <= int(text) <= DEVICE_MILLI else None
