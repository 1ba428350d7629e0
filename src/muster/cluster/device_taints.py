"""Taints that rules put on devices, beside those that their drivers say.

In come slices and DeviceTaintRules; out come slices as if the drivers had said it all.  Next:
`device_pools.py`.  Source: KEP-5055.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from muster.api.devices import Device, DeviceTaint, DeviceTaintRule, ResourceSlice


def with_taints(
    slices: Mapping[str, ResourceSlice], rules: Mapping[str, DeviceTaintRule]
) -> Mapping[str, ResourceSlice]:
    """The slices with the taints of all rules on the devices that these select, rules in order of name."""
    if not rules:
        return slices
    ordered = [rule for _, rule in sorted(rules.items())]
    return {name: _tainted(found, ordered) for name, found in slices.items()}


def _tainted(found: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    devices = found.spec.devices or ()
    taints = [[rule.spec.taint for rule in rules if _selects(rule, found, device)] for device in devices]
    if not any(taints):
        return found
    tainted = [_with(device, more) for device, more in zip(devices, taints, strict=True)]
    return replace(found, spec=replace(found.spec, devices=tainted))


def _with(device: Device, taints: list[DeviceTaint]) -> Device:
    return replace(device, taints=[*(device.taints or ()), *taints]) if taints else device


def _selects(rule: DeviceTaintRule, found: ResourceSlice, device: Device) -> bool:
    selector = rule.spec.device_selector
    if selector is None:
        return False
    wanted = (selector.driver, selector.pool, selector.device)
    named = (found.spec.driver, found.spec.pool.name, device.name)
    return all(want is None or want == name for want, name in zip(wanted, named, strict=True))
