"""DynamicResources: devices for claims, decided for all members of a gang together (resource.k8s.io/v1).

A node takes a pod if it can give the pod's claims their devices beside those of the gang's other members that
are there, which may change theirs for it.  In come pods, the devices of the snapshot and what the fork has
placed; out go masks, and at the end what each claim gets.  Source: KEP-4381.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from muster.api.core import Node, Pod
from muster.api.devices import Consumer, ResourceClaim
from muster.base.arrays import Bool, Float64, Int32
from muster.cluster.device_readiness import find_unready
from muster.cluster.devices import ClaimKey, Devices, device_claims_of, user_of
from muster.cluster.extended_resources import may_be_backed, unwritten_key
from muster.cluster.snapshot import PodMove, Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import ObjectKey, PodKey
from muster.framework.points import NodeReason, NodeVerdict
from muster.framework.ports import MakeClaim, Prepare, WriteClaim
from muster.framework.status import Status
from muster.placement.device_allocation import GaveUp, Given
from muster.placement.device_alternatives import have_alternatives, preference
from muster.placement.device_needs import find_device_needs
from muster.placement.device_offers import (
    MET,
    UNKNOWN,
    UNMET,
    DeviceOffers,
)
from muster.placement.device_reasons import find_lack
from muster.placement.device_results import allocation_of
from muster.placement.device_rivals import find_rival
from muster.placement.device_trials import NOTHING, Trial, add, leave
from muster.placement.extended_needs import (
    by_missing,
    claims_for,
    find_made,
    missing_on,
    thought_up,
    uses_devices,
)

CANNOT = "cannot allocate all claims"
NOT_THERE = "node(s) do not reach the devices of the pod's claims"
_APART = "no free devices are reached from both"
GAVE_UP = "node(s) on which the search for devices was given up"


class DynamicResources:
    """All claims of a pod have, or can get, devices that its node reaches."""

    name: ClassVar[str] = "DynamicResources"
    reads_metadata: ClassVar[bool] = False
    reads_pods: ClassVar[bool] = True
    only_narrows: ClassVar[bool] = True

    def check_claims(self, waiting: Sequence[Pod], devices: Devices) -> Status:
        for pod in waiting:
            for name, key in device_claims_of(pod):
                if key is None:
                    return Status.unresolvable(_not_made(pod, name))
                if key not in devices.claims:
                    return Status.unresolvable(
                        f'pod {pod.metadata.name} waits for resourceclaim "{key[1]}", which does not exist'
                    )
        return Status.success()

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not uses_devices(pod, snapshot.devices)

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        if not uses_devices(pod, snapshot.devices):
            return NodeVerdict(np.ones(len(rows), dtype=np.bool_))
        needs = find_device_needs(pod, snapshot.devices, _users_of(snapshot))
        if needs.refusal:
            nowhere = np.zeros(len(rows), dtype=np.bool_)
            return NodeVerdict(nowhere, (NodeReason(~nowhere, needs.refusal, resolvable=False),))
        offers = offers_of(snapshot)
        reached = np.ones(len(rows), dtype=np.bool_)
        for claim in needs.allocated:
            reached &= offers.reaches(claim)[rows]
        found = [NodeReason(~reached, NOT_THERE, resolvable=False)] if not reached.all() else []
        met, given_up = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
        for missing, where in by_missing(pod, snapshot, rows):
            claims = (*needs.open_claims, *claims_for(pod, missing, snapshot, offers, is_placed=False))
            met[where], given_up[where] = _meet(claims, snapshot, offers, rows[where])
        if given_up.any():
            found.append(NodeReason(given_up, GAVE_UP, is_unsure=True))
        if not (met | given_up).all():
            found.append(NodeReason(~(met | given_up), CANNOT))
        return NodeVerdict(reached & met, tuple(found))

    def example(self, pod: Pod, snapshot: Snapshot, row: int, text: str) -> str:
        needs = find_device_needs(pod, snapshot.devices, _users_of(snapshot))
        if text == NOT_THERE:
            there = [claim for claim in needs.allocated if not offers_of(snapshot).reaches(claim)[row]]
            return f"claim {'/'.join(there[0])} has its devices elsewhere" if there else ""
        if text != CANNOT:
            return needs.cure
        offers, missing = offers_of(snapshot), missing_on(pod, snapshot, row)
        claims = (*needs.open_claims, *claims_for(pod, missing, snapshot, offers, is_placed=False))
        trial = _trial_of(snapshot)
        for key in needs.open_claims:
            away = [home for home in trial.homes.get(key, ()) if home != row]
            if away and _met(NOTHING, (key,), row, offers) is not None:
                other = snapshot.node_names[away[0]]
                return f"claim {'/'.join(key)} is shared with a member on {other}: {_APART}"
        given = [each for found in trial.given.values() for each in found]
        return find_lack(claims, row, offers, given)

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        """The row itself; every row where devices are shared between nodes, or claims between pods."""
        if not uses_devices(pod, snapshot.devices) or not uses_devices(placed, snapshot.devices):
            return np.empty(0, dtype=np.int32)
        theirs = {key for _, key in device_claims_of(placed)}
        if offers_of(snapshot).are_linked or theirs & {key for _, key in device_claims_of(pod)}:
            return None
        return np.array([row], dtype=np.int32)

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        """Better where requests with alternatives get earlier ones."""
        scores = np.zeros(len(rows), dtype=np.float64)
        if not pod.spec.resource_claims:
            return scores
        needs, offers = find_device_needs(pod, snapshot.devices, {}), offers_of(snapshot)
        claims = [offers.claim_of(key) for key in needs.open_claims]
        if have_alternatives(claims):
            trial = _trial_of(snapshot)
            for index, row in enumerate(rows.tolist()):
                met = _met(trial, needs.open_claims, row, offers)
                scores[index] = preference(claims, met) if met is not None else 0.0
        return scores

    def prepare(
        self, placed: Sequence[tuple[Pod, int]], snapshot: Snapshot
    ) -> Mapping[PodKey, tuple[Prepare, ...]]:
        claiming = [
            (pod, row) for pod, row in placed if pod.spec.resource_claims or missing_on(pod, snapshot, row)
        ]
        if not claiming:
            return {}
        fork = snapshot.fork()
        for pod, row in claiming:
            fork.place(pod, row)
        trial, devices = _trial_of(fork), snapshot.devices
        users: dict[ClaimKey, list[tuple[Pod, Consumer]]] = {}
        node_of: dict[ClaimKey, str] = {}
        for pod, row in claiming:
            for name, key in device_claims_of(pod):
                if key is not None and key in devices.claims:
                    users.setdefault(key, []).append((pod, user_of(pod, name, devices)))
                    node_of[key] = snapshot.node_names[row]
        writes: dict[PodKey, tuple[Prepare, ...]] = {_key_of(pod): () for pod, _ in claiming}
        for key, found in users.items():
            claim = devices.claims[key]
            write = _write(claim, found, trial.given.get(key), node_of[key], devices)
            if write is not None:
                writes[write.key] = (*writes[write.key], write)
        for pod, row in claiming:
            made = _make(pod, row, trial, snapshot)
            if made is not None:
                writes[made.key] = (*writes[made.key], made)
        return writes

    def is_ready(self, pod: Pod, node: Node, snapshot: Snapshot) -> Status:
        devices = snapshot.devices
        row = snapshot.row_of_node.get(node.metadata.name)
        waits = ""
        wanted = [(key, user_of(pod, name, devices).uid) for name, key in device_claims_of(pod)]
        if row is not None and missing_on(pod, snapshot, row):
            made = find_made(pod, devices)
            if made is None:
                return Status.wait("the claim for its extended resources")
            wanted.append((made, pod.metadata.uid))
        for key, user_uid in wanted:
            claim = devices.claims.get(key) if key is not None else None
            if key is None or claim is None:
                return Status.unschedulable("a resource claim of the pod is gone")
            allocation = claim.status.allocation
            if allocation is None:
                if key in devices.choices:
                    return Status.wait(f'devices of claim "{key[1]}" to be written')
                return Status.unschedulable(f'claim "{key[1]}" got no devices on node {node.metadata.name}')
            if key in devices.freed:
                return Status.wait(f'devices of claim "{key[1]}" to be free')
            if row is None or not offers_of(snapshot).is_reached(key, row):
                text = f'the devices of claim "{key[1]}" are not reached from node {node.metadata.name}'
                return Status.unschedulable(text)
            rival = find_rival(key, devices)
            if rival is not None:
                return Status.unschedulable(
                    f'claim "{rival[1]}" of namespace {rival[0]} has a device of claim "{key[1]}"'
                )
            uids = (pod.metadata.uid, user_uid)
            if not any(user.uid in uids for user in claim.status.reserved_for or ()):
                return Status.wait(f'claim "{key[1]}" to be reserved')
            unready = find_unready(claim)
            if unready is not None and unready.is_lost:
                return Status.unschedulable(f'claim "{key[1]}": {unready.text}')
            if unready is not None:
                waits = waits or f'{unready.text} (claim "{key[1]}")'
        return Status.wait(waits) if waits else Status.success()

    def hint_rules(self) -> tuple[HintRule, ...]:
        return (
            HintRule(Change.DEVICES_CHANGED, _concerns),
            HintRule(Change.NODE_ADDED),
            HintRule(Change.NODE_LABELS_CHANGED),
            HintRule(Change.POD_UPDATED),
        )


def _not_made(pod: Pod, name: str) -> str:
    templates = {each.name: each.resource_claim_template_name for each in pod.spec.resource_claims or ()}
    return (
        f'pod {pod.metadata.name} waits for its claim "{name}", which is to be made from '
        f'resourceclaimtemplate "{templates.get(name)}": events of the pod say why it is not'
    )


def offers_of(snapshot: Snapshot) -> DeviceOffers:
    """What the frozen snapshot has to offer, reckoned once."""
    offers: DeviceOffers = snapshot.fold("DynamicResources offers", DeviceOffers, lambda value, moves: value)
    return offers


def _meet(
    claims: Sequence[ClaimKey], snapshot: Snapshot, offers: DeviceOffers, rows: Int32
) -> tuple[Bool, Bool]:
    """Rows [K] that can give these claims their devices, and rows [K] for which nobody knows."""
    if not claims:
        return np.ones(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
    trial = _trial_of(snapshot)
    answers = offers.meets(claims, rows)  # nobody gets beside others what it could not get alone
    known = any(claim in trial.given for claim in claims)
    linked = any(offers.is_linked(each.offer) for found in trial.given.values() for each in found)
    if known or linked:
        for index in np.flatnonzero(answers != UNMET):
            answers[index] = _try(trial, claims, int(rows[index]), offers)
        return answers == MET, answers == UNKNOWN
    for row, there in trial.rows.items():
        is_local = all(set(trial.homes[claim]) == {row} for claim in there)
        for index in np.flatnonzero(rows == row) if there else ():
            if is_local:  # asked once for all rows that are alike
                answers[index] = offers.meets((*there, *claims), rows[index : index + 1])[0]
            else:
                answers[index] = _try(trial, claims, row, offers)
    return answers == MET, answers == UNKNOWN


def _met(
    trial: Trial, claims: Sequence[ClaimKey], row: int, offers: DeviceOffers
) -> Sequence[Sequence[str]] | None:
    """Of each claim the requests and alternatives that the row meets beside those of the trial."""
    try:
        if not offers.are_linked and not trial.rows.get(row) and not trial.given.keys() & set(claims):
            return offers.met(claims, row)
        found = add(trial, claims, row, offers)
    except GaveUp:
        return None
    return None if found is None else [[each.request for each in found.given[key]] for key in claims]


def _try(trial: Trial, claims: Sequence[ClaimKey], row: int, offers: DeviceOffers) -> int:
    try:
        return UNMET if add(trial, claims, row, offers) is None else MET
    except GaveUp:
        return UNKNOWN


def _trial_of(snapshot: Snapshot) -> Trial:
    """What pods placed on this fork have got between them."""
    offers = offers_of(snapshot)

    def step(trial: Trial, moves: Sequence[PodMove]) -> Trial:
        for move in moves:
            if not uses_devices(move.pod, snapshot.devices):
                continue
            missing = missing_on(move.pod, snapshot, move.row)
            claims = find_device_needs(move.pod, snapshot.devices, {}).open_claims
            claims += claims_for(move.pod, missing, snapshot, offers, is_placed=True)
            if move.sign > 0:
                try:
                    trial = add(trial, claims, move.row, offers) or trial
                except GaveUp:
                    continue
            else:
                trial = leave(trial, claims, move.row)
        return trial

    return snapshot.fold("DynamicResources", lambda _: NOTHING, step)


def _users_of(snapshot: Snapshot) -> Mapping[ClaimKey, int]:
    """How many pods placed on this fork use each claim that a pod names."""

    def step(users: dict[ClaimKey, int], moves: Sequence[PodMove]) -> dict[ClaimKey, int]:
        named = [
            ((move.pod.metadata.namespace, claim.resource_claim_name), move.sign)
            for move in moves
            for claim in move.pod.spec.resource_claims or ()
            if claim.resource_claim_name
        ]
        found = dict(users) if named else users
        for key, sign in named:
            found[key] = found.get(key, 0) + sign
        return found

    nobody: dict[ClaimKey, int] = {}
    return snapshot.fold("DynamicResources users", lambda _: nobody, step)


def _write(
    claim: ResourceClaim,
    wanted_by: Sequence[tuple[Pod, Consumer]],
    given: Sequence[Given] | None,
    node_name: str,
    devices: Devices,
) -> WriteClaim | None:
    """What is to be said on a claim: its devices if it has none yet, and everybody who may use them."""
    users = list(claim.status.reserved_for or ())
    known = {user.uid for user in users}
    users += dict.fromkeys(user for _, user in wanted_by if user.uid not in known)
    allocation = None
    if claim.status.allocation is None and given is not None:
        allocation = allocation_of(claim, given, node_name, devices)
    if allocation is None and len(users) == len(known):
        return None
    meta = claim.metadata
    key = ObjectKey(meta.namespace, meta.name)
    first = _key_of(wanted_by[0][0])
    return WriteClaim(first, key, meta.uid, meta.resource_version, allocation, tuple(users))


def _make(pod: Pod, row: int, trial: Trial, snapshot: Snapshot) -> MakeClaim | None:
    """The claim that is to be made in place of extended resources that the row does not offer."""
    meta, missing = pod.metadata, missing_on(pod, snapshot, row)
    given = trial.given.get(unwritten_key(meta.namespace, meta.uid, missing))
    if not missing or given is None:
        return None
    claim, mappings = thought_up(pod, missing, snapshot.devices)
    allocation = allocation_of(claim, given, snapshot.node_names[row], snapshot.devices)
    key = ObjectKey(*unwritten_key(meta.namespace, meta.uid))
    requests = tuple(claim.spec.devices.requests or ())
    return MakeClaim(_key_of(pod), key, meta.uid, requests, mappings, allocation)


def _key_of(pod: Pod) -> PodKey:
    return ObjectKey(pod.metadata.namespace, pod.metadata.name)


def _concerns(rejected: Rejected, event: ClusterEvent) -> Hint:
    """Who claims nothing is not helped; a claim that keeps its devices helps only its own pods."""
    keys = {key for pod in rejected.pods for _, key in device_claims_of(pod)}
    if not keys and not any(may_be_backed(pod) for pod in rejected.pods):
        return Hint.SKIP
    found = event.devices
    if isinstance(found, ResourceClaim) and found.status.allocation is not None:
        is_ours = (found.metadata.namespace, found.metadata.name) in keys
        return Hint.QUEUE if is_ours else Hint.SKIP
    return Hint.QUEUE
