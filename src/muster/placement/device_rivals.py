"""Two claims with one device: whose it is, as the API shows them.

A device may be in two claims when two schedulers write at once; the API does not forbid it.  The claim that
was written first keeps it.  Shares of one device, and devices that are cut from the same counters, stand in
each other's way only beyond what there is.  In come claims as seen; out comes the one that was first.
"""

from collections.abc import Iterable, Iterator, Mapping

from muster.api.meta import version_number
from muster.cluster.device_pools import DeviceId
from muster.cluster.devices import ClaimKey, Devices, given_in, spent_by


def find_rival(key: ClaimKey, devices: Devices) -> ClaimKey | None:
    """Another claim that the API shows with something that this one has, written before this one was."""
    ours: dict[DeviceId, list[Mapping[str, int] | None]] = {}
    for device, share in _given(key, devices):
        ours.setdefault(device, []).append(share)
    for device, shares in ours.items():
        earlier = _earlier(key, devices.taken.get(device, ()), devices)
        for other in earlier:
            theirs = [share for found, share in _given(other, devices) if found == device]
            if any(share is None for share in (*shares, *theirs)):
                return other
            shares = [*shares, *theirs]
        if earlier and _is_too_much(device, shares, devices):
            return earlier[-1]
    return _counter_rival(key, ours, devices)


def _is_too_much(device: DeviceId, shares: Iterable[Mapping[str, int] | None], devices: Devices) -> bool:
    capacities = devices.pools.capacities_of(device)
    taken: dict[str, int] = {}
    for share in shares:
        for name, amount in (share or {}).items():
            taken[name] = taken.get(name, 0) + amount
    return any(amount > capacities.get(name, amount) for name, amount in taken.items())


def _counter_rival(key: ClaimKey, ours: Iterable[DeviceId], devices: Devices) -> ClaimKey | None:
    """The last of the earlier claims whose devices leave too little of a counter for ours."""
    pools = devices.pools
    needed = {counter for device in ours for counter, _ in pools.consumers.get(device, ())}
    if not needed:
        return None
    beside = [
        device
        for device in devices.taken
        if device not in ours and any(counter in needed for counter, _ in pools.consumers.get(device, ()))
    ]
    earlier = {device: _earlier(key, devices.taken[device], devices) for device in beside}
    spent = spent_by((*ours, *(device for device, claims in earlier.items() if claims)), pools)
    if all(spent[counter] <= pools.counters[counter] for counter in needed):
        return None
    return max(
        (claims[-1] for claims in earlier.values() if claims), key=lambda other: _version(other, devices)
    )


def _earlier(key: ClaimKey, claims: Iterable[ClaimKey], devices: Devices) -> list[ClaimKey]:
    """Those of these claims that the API shows as written before this one, the first written first."""
    found = [
        other
        for other in claims
        if other != key and _is_shown(other, devices) and _version(other, devices) < _version(key, devices)
    ]
    return sorted(dict.fromkeys(found), key=lambda other: _version(other, devices))


def _given(key: ClaimKey, devices: Devices) -> Iterator[tuple[DeviceId, Mapping[str, int] | None]]:
    claim = devices.claims.get(key)
    allocation = claim.status.allocation if claim is not None else None
    return given_in(allocation) if allocation is not None else iter(())


def _is_shown(key: ClaimKey, devices: Devices) -> bool:
    claim = devices.claims.get(key)
    return claim is not None and claim.status.allocation is not None


def _version(key: ClaimKey, devices: Devices) -> int:
    return version_number(devices.claims[key].metadata.resource_version) or 0
