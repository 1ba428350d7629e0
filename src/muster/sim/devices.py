"""Parts of GPUs: no device is given away twice, judged on what the API says.

In come views of the API; the arithmetic is slow and of its own.  Next: `run.py`, which asks.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from muster.sim.view import GPU, ClusterView, Object, amount, gpus_of, name_of, share_of

GPU_INDEX = "muster.dev/gpu-index"
WHOLE = 1000


class DevicesApart:
    """Parts on one device never exceed it, each part has its device, and whole GPUs have untouched ones."""

    name = "devices apart"

    def __init__(self, look: Callable[[], ClusterView]) -> None:
        self._look = look

    def check(self, now_s: float) -> Iterator[str]:
        """Devices given away twice, and parts without a device."""
        view = self._look()
        for node_name, pods in view.pods_on.items():
            node = view.nodes.get(node_name)
            if node is not None and any(share_of(pod) for pod in pods):
                yield from _complaints(node, pods)


def _complaints(node: Object, pods: list[Object]) -> Iterator[str]:
    count = amount((node["status"].get("allocatable") or {}).get(GPU, "0")) // 1000
    taken: Counter[int] = Counter()
    for pod in pods:
        share = share_of(pod)
        if not share:
            continue
        devices = devices_of(pod)
        if not devices or max(devices) >= count:
            yield f"pod {name_of(pod)} has devices {devices} of the {count} of node {name_of(node)}"
        for device in devices:
            taken[device] += share
    over = {device: milli for device, milli in sorted(taken.items()) if milli > WHOLE}
    if over:
        yield f"node {name_of(node)}: thousandths taken of its devices: {over}"
    whole = sum(gpus_of(pod) for pod in pods if not share_of(pod))
    if whole + len(taken) > count:
        yield f"node {name_of(node)}: {whole} whole GPUs and {len(taken)} shared ones, of {count}"


def devices_of(pod: Object) -> list[int]:
    """The devices that the binding says."""
    text = str((pod["metadata"].get("annotations") or {}).get(GPU_INDEX) or "")
    return [int(part) for part in text.split(",") if part]
