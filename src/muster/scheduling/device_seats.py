"""Which GPUs the members of a decision get: read off the fork on which they were placed.

Like members may have changed places since (`ranks.py`); a place then keeps its devices.  In come members with
their rows; out go device numbers for those that say what part of a GPU they take.  Next: `binding.py`, which
writes them with the binding.
"""

from muster.api.core import Pod
from muster.cluster.gpu_annotations import milli_of
from muster.cluster.requests import DeviceAsk, device_ask
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import PodKey
from muster.scheduling.board import Placed


def shares_a_device(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether the pod takes a part of a GPU, or whole ones where others take parts."""
    if not snapshot.share_devices and milli_of(pod) is None:
        return False
    return device_ask(pod) is not None


def devices_for(placed: Placed, fork: Snapshot) -> dict[PodKey, tuple[int, ...]]:
    """Devices of each placed member whose binding must say them; nothing where nobody shares any."""
    if not fork.share_devices:
        return {}
    keys = {tuple(member.key) for member, _ in placed}
    free: dict[tuple[int, DeviceAsk], list[tuple[int, ...]]] = {}
    for row in dict.fromkeys(row for _, row in placed):
        for key, hold in fork.gpus.holds_on(row).items():
            if key in keys:
                free.setdefault((row, DeviceAsk(len(hold.devices), hold.milli)), []).append(hold.devices)
    found: dict[PodKey, tuple[int, ...]] = {}
    for member, row in placed:
        ask = device_ask(member.pod)
        if ask is not None and milli_of(member.pod) is not None:
            found[member.key] = free[row, ask].pop(0)
    return found
