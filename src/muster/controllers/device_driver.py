"""The simulated DRA driver: ResourceSlices for nodes that say in an annotation which devices they have.

`muster.dev/devices` on a Node holds the list of descriptions as JSON (a node file's `devices` ends there).
Each pool of the node becomes one slice, or two where devices are cut into parts (the second has their
counters).  They follow the annotation, with a higher generation each time, and go with the node.  A
description with a mistake changes nothing and is told in an Event on the node.
Next: `device_descriptions.py`, which reads the descriptions.
"""

from collections.abc import Iterable, Iterator

import msgspec

from muster.base.errors import ConfigError
from muster.controllers.device_descriptions import Pool, read_pools
from muster.controllers.objects import annotation_of, is_deleting, name_of, uid_of
from muster.controllers.ports import DEVICE_SLICES, NODES, Ask, Object, Seen, View, Write
from muster.controllers.reconciler import Key, Reconciler

DEVICES = "muster.dev/devices"


class SimulatedDeviceDriver(Reconciler):
    """Publishes slices; a key is a node's name."""

    name = "simulated-device-driver"
    kinds = (NODES, DEVICE_SLICES)

    def keys_of(self, change: Seen, view: View) -> Iterable[Key]:
        if change.kind == NODES:
            before = annotation_of(change.before, DEVICES) if change.before is not None else None
            after = annotation_of(change.after, DEVICES) if change.after is not None else None
            if before != after:
                yield (name_of(change.object),)
        elif change.after is None and annotation_of(change.object, DEVICES) is not None:
            yield (str(change.object["spec"].get("nodeName", "")),)

    def reconcile(self, key: Key, view: View, now_s: float) -> Iterator[Ask]:
        (node_name,) = key
        node = view.get(NODES, "", node_name)
        text = annotation_of(node, DEVICES) if node is not None and not is_deleting(node) else None
        pools: list[Pool] = []
        if node is not None and text is not None:
            try:
                pools = read_pools(_decode(text), node_name, f"metadata.annotations[{DEVICES}]")
            except ConfigError as error:
                cure = f"; {error.hint}" if error.hint else ""
                yield self.event(node, "Warning", "InvalidDevices", f"{error}{cure}", now_s)
                return
        wanted = {name for pool in pools for name in _contents(pool)}
        for found in tuple(view.list(DEVICE_SLICES)):
            is_ours = annotation_of(found, DEVICES) is not None and found["spec"].get("nodeName") == node_name
            if is_ours and name_of(found) not in wanted:
                yield Write("delete", DEVICE_SLICES, "", name_of(found), uid=uid_of(found))
        for pool in pools:
            assert node is not None
            yield from self._publish(pool, node, view, now_s)

    def _publish(self, pool: Pool, node: Object, view: View, now_s: float) -> Iterator[Ask]:
        """Write the slices of a pool, unless they say just this already."""
        contents = _contents(pool)
        known = {name: view.get(DEVICE_SLICES, "", name) for name in contents}
        for name, found in known.items():
            if found is not None and found["spec"].get("nodeName") != name_of(node):
                text = f"ResourceSlice {name} is not of this node; give the pool {pool.name} another name"
                yield self.event(node, "Warning", "InvalidDevices", text, now_s)
                return
        said = annotation_of(node, DEVICES)
        there = [found for found in known.values() if found is not None]
        if len(there) == len(contents) and all(annotation_of(found, DEVICES) == said for found in there):
            return
        generation = max((int(found["spec"]["pool"].get("generation", 0)) for found in there), default=0) + 1
        described = {"generation": generation, "resourceSliceCount": len(contents)}
        for name, content in contents.items():
            found = known[name]
            if found is None:
                yield Write("create", DEVICE_SLICES, "", "", _slice_of(name, pool, described, content, node))
                continue
            body = {"metadata": {"annotations": {DEVICES: said}}, "spec": {**content, "pool": described}}
            yield Write("patch", DEVICE_SLICES, "", name, body, uid=uid_of(found))


def _decode(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        hint = 'a list, like [{"driver": "gpu.example.com", "count": 8}]'
        raise ConfigError(f"not JSON: {error}", path=f"metadata.annotations[{DEVICES}]", hint=hint) from error


def _contents(pool: Pool) -> dict[str, Object]:
    """What the slices of a pool hold, by their names; counters have one of their own."""
    name = f"{pool.name}-{pool.driver}"
    found: dict[str, Object] = {name: {"devices": pool.devices}}
    if pool.counter_sets:
        found[f"{name}-counters"] = {"sharedCounters": pool.counter_sets}
    return found


def _slice_of(name: str, pool: Pool, described: Object, content: Object, node: Object) -> Object:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": uid_of(node)}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": name,
            "annotations": {DEVICES: annotation_of(node, DEVICES)},
            "ownerReferences": [owner],
        },
        "spec": {
            "driver": pool.driver,
            "nodeName": name_of(node),
            "pool": {"name": pool.name, **described},
            **content,
        },
    }
