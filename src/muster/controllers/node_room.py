"""What the running pods of each node take together, kept up to date instead of added up each time.

`kubelet.py` says who runs where and asks what is taken.
"""

from typing import NamedTuple

from muster.cluster.requests import Amounts


class _Held(NamedTuple):
    node_name: str
    amounts: Amounts


class NodeRooms:
    """Amounts by node, of pods known by uid."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._used: dict[str, Amounts] = {}

    def take(self, node_name: str, uid: str, amounts: Amounts) -> None:
        """Count the pod on this node with these amounts, and nowhere else."""
        self.release(uid)
        self._held[uid] = _Held(node_name, amounts)
        used = self._used.setdefault(node_name, {})
        for resource, amount in amounts.items():
            used[resource] = used.get(resource, 0) + amount

    def release(self, uid: str) -> None:
        """Count the pod no longer; nothing happens if it was not counted."""
        held = self._held.pop(uid, None)
        if held is None:
            return
        used = self._used.get(held.node_name, {})
        for resource, amount in held.amounts.items():
            left = used.get(resource, 0) - amount
            if left:
                used[resource] = left
            else:
                used.pop(resource, None)
        if not used:
            self._used.pop(held.node_name, None)

    def used(self, node_name: str) -> Amounts:
        """What the counted pods of this node take; not to be changed."""
        return self._used.get(node_name, {})

    def __len__(self) -> int:
        return len(self._held)
