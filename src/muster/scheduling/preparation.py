"""Between the decision and the bindings: volumes and claims of members, written and waited for.

Nobody of a gang is bound before so many members are ready that its minimum can be; meanwhile all of them keep
their room.  Should one get no volume where it was placed, or the gang be given up meanwhile, all that are not
bound give their room back and the gang is decided anew.  In come placements of a cycle and what is seen of
their volumes; out go writes, and the members whose bindings may be asked for.  Next: `binding.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.devices import DeviceClass, ResourceClaim, ResourceClaimStatus
from muster.base.errors import PluginError
from muster.cluster.extended_resources import backed_asks
from muster.cluster.volumes import Choice
from muster.framework.events import Change, ClusterEvent, Rejected
from muster.framework.groups import PodKey
from muster.framework.ports import (
    DevicesGone,
    DevicesSeen,
    DropClaim,
    Effect,
    MakeClaim,
    PatchPodStatus,
    Prepare,
    PrepareFailed,
    PromiseVolume,
    SelectNode,
    StorageGone,
    StorageSeen,
    WriteClaim,
)
from muster.framework.status import Status, Verdict
from muster.scheduling.books import Books
from muster.scheduling.claim_users import clear, is_waiting
from muster.scheduling.double_claims import tell_double
from muster.scheduling.extended_claims import drop_made, drop_unwanted
from muster.scheduling.idle_claims import free_idle, refuse_clear, watch_claim
from muster.scheduling.kept import explain_lost_room, has_room_still
from muster.scheduling.members import Cast, EntityKey, Member, Stage
from muster.scheduling.preparations import UNPREPARED_S_MAX, Preparation
from muster.scheduling.queue import Place
from muster.scheduling.sleepers import Refusal
from muster.scheduling.standing import has_started
from muster.scheduling.transaction import find_hold
from muster.scheduling.unready_devices import free_unready, stamped

UNPREPARED = "Unprepared"
CLAIM_GATE = "DynamicResources"  # who holds back pods without their claims
CONFLICT = 409


def needs_preparation(
    books: Books, placements: Sequence[tuple[Member, str]]
) -> dict[PodKey, tuple[Prepare, ...]]:
    """What members of one decision need to have written before they are bound; nothing for most gangs.

    Raises   PluginError, before anything has been changed.
    """
    devices = books.state.devices
    if not any(
        member.pod.spec.volumes or member.pod.spec.resource_claims or backed_asks(member.pod, devices.backed)
        for member, _ in placements
    ):
        return {}
    snapshot = books.state.snapshot()
    rows = [(member.pod, snapshot.row_of_node[node_name]) for member, node_name in placements]
    return books.runner.prepare(rows, snapshot)


def begin(
    books: Books,
    placements: Iterable[tuple[Member, str]],
    needs: dict[PodKey, tuple[Prepare, ...]],
    attempt: int,
    now_s: float,
) -> list[Effect]:
    """Keep members that have been placed from being bound until their gang's volumes are there."""
    effects: list[Effect] = []
    for member, node_name in placements:
        uid = member.pod.metadata.uid
        preparation = Preparation(
            key=member.key,
            uid=uid,
            node_name=node_name,
            root=books.members.root_of(member.entity),
            attempt=attempt,
            since_s=now_s,
            writes=stamped(needs.get(member.key), now_s),
        )
        books.preparations.add(preparation)
        books.preparations.touch(preparation.root)
        effects += drop_made(books, member.key, uid)
        for write in preparation.writes:
            _count_as_chosen(books, write)
        if preparation.is_nominated and member.pod.status.nominated_node_name != node_name:
            effects.append(PatchPodStatus(member.key, uid, nominated_node_name=node_name))
        effects += preparation.writes
    return effects


def see_storage(books: Books, event: StorageSeen | StorageGone, now_s: float) -> None:
    """A volume, claim or class is seen or gone: who waits for one is looked at."""
    volumes = books.state.volumes
    if isinstance(event, StorageSeen):
        if not volumes.apply(event.found):
            return
        found = event.found
    else:
        gone = volumes.remove(event.kind, event.key, event.uid)
        if gone is None:
            return
        found = gone
    books.tell(ClusterEvent(Change.STORAGE_CHANGED, storage=found), now_s)
    books.preparations.touch_all()


def see_devices(books: Books, event: DevicesSeen | DevicesGone, now_s: float) -> list[Effect]:
    """A slice, class or claim is seen or gone: who waits for one is looked at."""
    devices = books.state.devices
    effects: list[Effect] = []
    if isinstance(event, DevicesSeen):
        found = event.found
        key = (found.metadata.namespace, found.metadata.name)
        before, was_asked = devices.find_claim(key), devices.is_freed(key)
        if not devices.apply(found):
            return []
        if isinstance(found, ResourceClaim):
            watch_claim(books, found, now_s, was_asked=was_asked)
            effects += tell_double(books, before, found)
            effects += drop_unwanted(books, before, found)
    else:
        gone = devices.remove(event.kind, event.key, event.uid)
        if gone is None:
            return []
        found = gone
        if isinstance(found, ResourceClaim):  # whatever it had is free
            found = replace(found, status=ResourceClaimStatus())
    books.tell(ClusterEvent(Change.DEVICES_CHANGED, devices=found), now_s)
    if isinstance(found, DeviceClass):
        books.tell(ClusterEvent(Change.RESOURCE_BACKED, devices=found), now_s)
    books.preparations.touch_all()
    if isinstance(found, ResourceClaim):
        for entry in books.queue:
            if entry.place is Place.GATED and entry.gate is not None and entry.gate.plugin == CLAIM_GATE:
                books.touch(entry.key)
    return effects


def fail_preparation(books: Books, event: PrepareFailed, now_s: float) -> list[Effect]:
    """The API refused a write: the choice does not hold.  One without an answer is asked for again.

    A claim that only gets more users, and has changed, is written again as soon as it is seen changed.
    """
    effect = event.effect
    if isinstance(effect, DropClaim):
        return []
    if isinstance(effect, WriteClaim) and effect.clears:
        refuse_clear(books, effect, now_s)
        return []
    member = books.members.find(effect.key)
    preparation = books.preparations.find(member.pod.metadata.uid) if member is not None else None
    is_ours = preparation is not None and effect in preparation.writes
    if event.code == 0 and not isinstance(effect, MakeClaim):
        return [effect] if is_ours and not _is_shown(books, effect) else []
    _unchoose(books, effect)
    if preparation is not None and is_ours:
        if event.code == CONFLICT and isinstance(effect, WriteClaim) and effect.allocation is None:
            preparation.stale.append(effect)
        else:
            name = f'claim "{effect.claim.name}"'
            if isinstance(effect, MakeClaim):
                name = "the claim for its extended resources"
            text = f"{name} could not be written: {event.message or event.code}"
            preparation.status = Status.unschedulable(text)
    books.preparations.touch_all()
    return []


def lose_preparation(books: Books, uid: str) -> None:
    """The pod is gone, or bound by somebody: nobody prepares anything for it any more."""
    preparation = books.preparations.end(uid)
    if preparation is not None:
        for write in preparation.writes:
            _unchoose(books, write)
        books.preparations.touch(preparation.root)


def drive_out(books: Books, pod: Pod, preemptor: EntityKey) -> bool:
    """Whether the pod is in preparation: then it holds nothing yet, and gives way without being deleted."""
    preparation = books.preparations.find(pod.metadata.uid)
    if preparation is None:
        return False
    text = f"{preemptor.kind} {preemptor.key}, which is more important, takes its room"
    preparation.status = Status.unschedulable(text)
    books.preparations.touch(preparation.root)
    return True


class Tended(NamedTuple):
    """Who may be bound now; who never will be where it is, and why; what else is to be done."""

    ready: list[Preparation]
    lost: list[tuple[Member, str]]
    effects: list[Effect]


def tend_preparations(books: Books, now_s: float) -> Tended:
    """Look at whom something changed for."""
    for overdue in books.preparations.overdue(now_s):
        if overdue.status.verdict is Verdict.WAIT:
            text = f"was not there within {UNPREPARED_S_MAX:.0f} s: {overdue.status.message}"
            overdue.status = Status.unschedulable(text)
        books.preparations.touched[overdue.root] = None
    tended = Tended([], [], [*free_idle(books, now_s)])
    while books.preparations.touched:
        root = next(iter(books.preparations.touched))
        del books.preparations.touched[root]
        if find_hold(books, books.members.cast(root), now_s) is not None or _is_short(books, root):
            tended.effects.extend(_give_back(books, root, None, now_s))
            continue
        tended.effects.extend(_reserve_again(books, root))
        lost = _judge(books, root)
        if lost is not None:
            tended.effects.extend(_give_back(books, root, lost, now_s))
            member = books.members.find(lost.key)
            if member is not None and member.stage is Stage.WAITING:
                tended.lost.append((member, _why(lost)))
            continue
        found = _bindable(books, root)
        tended.ready.extend(found)
        if not found:
            books.speech.arm(root, now_s)
    return tended


def _is_short(books: Books, root: EntityKey) -> bool:
    """Whether a group has lost members that it needs, or is gone itself: nobody who is ready can be bound.

    A composite that has not started needs groups in the same way.
    """
    if root.kind == "pod":
        return False
    cast = books.members.cast(root)
    if cast.group is None or not (has_started(books, cast) or _is_enough(cast, attrgetter("known_count"))):
        return True
    preparing = {each.key for each in books.preparations.of(root)}
    return any(
        leaf.group is None or not _is_enough(leaf, attrgetter("known_count"))
        for leaf in cast.leaves()
        if preparing.intersection(leaf.stages[Stage.ASSUMED])
    )


def _is_enough(cast: Cast, count: Callable[[Cast], int]) -> bool:
    """Whether a group has its minimum by this count of members, or a composite enough groups that have."""
    needed = cast.group.needed if cast.group is not None else 1
    if cast.is_composite:
        return sum(_is_enough(child, count) for child in cast.children.values()) >= needed
    return count(cast) >= needed


def describe(books: Books, root: EntityKey) -> str:
    """What members in preparation wait for, as their group is told; "" where none is."""
    preparations = books.preparations.of(root)
    waiting = [each for each in preparations if not each.status.ok]
    if not waiting:
        return ""
    seen = dict.fromkeys(each.status.message for each in waiting)
    shown = "; ".join(list(seen)[:3]) + ("; …" if len(seen) > 3 else "")
    is_are = f"{len(preparations) - len(waiting)} of {len(preparations)} members are ready to be bound"
    return f"{is_are}, the others wait for: {shown}"


def _reserve_again(books: Books, root: EntityKey) -> list[Effect]:
    """Add the users that were refused to claims that had changed, where the change has been seen."""
    effects: list[Effect] = []
    for preparation in books.preparations.of(root):
        for write in list(preparation.stale):
            claim = books.state.devices.find_claim(write.claim)
            if claim is None or claim.metadata.resource_version == write.version:
                continue  # not seen yet, or gone: then it is not waited for either
            preparation.stale.remove(write)
            if claim.metadata.uid != write.claim_uid:
                preparation.status = Status.unschedulable(f'claim "{write.claim.name}" was made anew')
                continue
            users = list(claim.status.reserved_for or ())
            users += [user for user in write.reserved_for if is_waiting(books, write.claim, user)]
            users = list({user.uid: user for user in users}.values())
            again = replace(write, version=claim.metadata.resource_version, reserved_for=tuple(users))
            preparation.writes = tuple(again if each is write else each for each in preparation.writes)
            effects.append(again)
    return effects


def _judge(books: Books, root: EntityKey) -> Preparation | None:
    """Ask about every member of a tree again; the first that will never be ready where it is."""
    snapshot = books.state.snapshot()
    for preparation in books.preparations.of(root):
        member = books.members.find(preparation.key)
        node = books.state.node(preparation.node_name)
        if preparation.status.verdict not in (Verdict.SUCCESS, Verdict.WAIT):
            return preparation
        if member is None or node is None:
            preparation.status = Status.unschedulable(f"node {preparation.node_name} is gone")
        elif not has_room_still(books, preparation.key, preparation.node_name):
            preparation.status = Status.unschedulable(explain_lost_room(preparation.node_name))
        elif preparation.is_nominated or member.pod.spec.volumes or member.pod.spec.resource_claims:
            try:  # of a pod with claims even where nothing was to be written: they may be made anew meanwhile
                preparation.status = books.runner.is_ready(member.pod, node, snapshot)
            except PluginError as error:
                preparation.status = Status.error(str(error))
        if preparation.status.verdict not in (Verdict.SUCCESS, Verdict.WAIT):
            return preparation
    return None


def _bindable(books: Books, root: EntityKey) -> list[Preparation]:
    """Those who are ready, if with them every group of theirs reaches its minimum, and the tree its own.

    A composite that has started needs no other groups any more.
    """
    preparations = {each.key: each for each in books.preparations.of(root)}
    waiting = {key for key, each in preparations.items() if not each.status.ok}

    def ready_count(leaf: Cast) -> int:
        return leaf.placed_count - len(waiting.intersection(leaf.stages[Stage.ASSUMED]))

    cast = books.members.cast(root)
    if cast.is_composite and not (has_started(books, cast) or _is_enough(cast, ready_count)):
        return []
    found: list[Preparation] = []
    for leaf in cast.leaves():
        ours = [preparations[key] for key in leaf.stages[Stage.ASSUMED] if key in preparations]
        if ours and not _is_enough(leaf, ready_count):
            return []
        found += [each for each in ours if each.status.ok]
    return found


def _give_back(books: Books, root: EntityKey, lost: Preparation | None, now_s: float) -> list[Effect]:
    """All members of the tree that are not bound yet are free again; the one that was lost says why.

    None was where the tree is held, as while a gang of it is released, or lacks members: then that says why.
    """
    effects: list[Effect] = []
    given_back: list[Pod] = []
    for preparation in books.preparations.of(root):
        books.preparations.end(preparation.uid)
        effects += _take_back(books, preparation)
        books.state.forget(preparation.key, preparation.uid)
        member = books.members.find(preparation.key)
        if member is None or member.pod.metadata.uid != preparation.uid or member.stage is not Stage.ASSUMED:
            continue
        books.members.forget(member)
        given_back.append(member.pod)
        if preparation.is_nominated and (patch := books.nominations.nominate(member.pod, "")) is not None:
            effects.append(patch)
        freed = ClusterEvent(Change.POD_FREED, pod=member.pod, node=books.state.node(preparation.node_name))
        books.tell(freed, now_s)
    books.touch(root)
    cast = books.members.cast(root)
    if given_back and lost is not None:
        books.queue.refuse(root, _refusal(cast, tuple(given_back), lost), now_s)
    return effects


def _refusal(cast: Cast, given_back: tuple[Pod, ...], lost: Preparation) -> Refusal:
    return Refusal(
        rejectors=frozenset(),
        rejected=Rejected(cast.group.key if cast.group is not None else None, cast.group, given_back),
        reason=UNPREPARED,
        message=_why(lost),
        member_count=len(given_back) if cast.group is not None else 1,
        error=True,
        error_round=lost.attempt,
    )


def _why(lost: Preparation) -> str:
    return f"pod {lost.key.name} on node {lost.node_name}: {lost.status.message}"


def _is_shown(books: Books, write: PromiseVolume | SelectNode | WriteClaim) -> bool:
    """Whether what a write is about has been seen changed since, by this very write or by somebody else."""
    if isinstance(write, WriteClaim):
        used = books.state.devices.find_claim(write.claim)
        if used is not None and write.allocation is not None:
            return used.status.allocation is not None
        return used is None or used.metadata.resource_version != write.version
    known = books.state.volumes.freeze()
    if isinstance(write, PromiseVolume):
        volume = known.volumes.get(write.volume_name)
        return volume is None or volume.metadata.resource_version != write.version
    claim = known.claims.get(write.claim)
    return claim is None or claim.is_bound or claim.selected_node == write.node_name


def _count_as_chosen(books: Books, write: Prepare) -> None:
    if isinstance(write, DropClaim):
        return
    if isinstance(write, WriteClaim | MakeClaim):
        if write.allocation is not None:
            books.state.devices.choose(write.claim, write.allocation)
        return
    name = write.volume_name if isinstance(write, PromiseVolume) else ""
    node_name = write.node_name if isinstance(write, SelectNode) else ""
    books.state.volumes.choose(write.claim, Choice(name, node_name))


def _unchoose(books: Books, write: Prepare) -> None:
    if isinstance(write, WriteClaim | MakeClaim):
        books.state.devices.unchoose(write.claim)
    elif not isinstance(write, DropClaim):
        books.state.volumes.unchoose(write.claim)


def _take_back(books: Books, preparation: Preparation) -> list[Effect]:
    """Undo what was written and has led to nothing; a volume that was made stays its claim's."""
    effects: list[Effect] = [*free_unready(books, preparation)]
    known = books.state.volumes.freeze()
    for write in preparation.writes:
        if isinstance(write, WriteClaim):
            effects += _give_devices_back(books, write)
            continue
        if isinstance(write, MakeClaim | DropClaim):
            _unchoose(books, write)
            effects += drop_made(books, preparation.key, preparation.uid)
            continue
        claim = known.claims.get(write.claim)
        is_choice = write.claim in known.choices
        books.state.volumes.unchoose(write.claim)
        if claim is None or claim.is_bound or claim.metadata.uid != write.claim_uid:
            continue
        if isinstance(write, SelectNode) and is_choice:
            effects.append(SelectNode(write.key, write.claim, write.claim_uid, ""))
        elif isinstance(write, PromiseVolume):
            effects.append(PromiseVolume(write.key, write.volume_name, "", write.claim, ""))
    return effects


def _give_devices_back(books: Books, write: WriteClaim) -> list[Effect]:
    """The claim as it was before: without our devices, or without our users."""
    books.state.devices.unchoose(write.claim)
    claim = books.state.devices.find_claim(write.claim)
    if claim is None or claim.metadata.uid != write.claim_uid:
        return []
    before = tuple(
        user
        for user in claim.status.reserved_for or ()
        if user not in write.reserved_for or not is_waiting(books, write.claim, user)
    )
    if write.allocation is not None and not before:
        return [clear(books, write.key, claim)]
    version = claim.metadata.resource_version
    return [WriteClaim(write.key, write.claim, write.claim_uid, version, None, before)]


def member_of(books: Books, preparation: Preparation) -> Member | None:
    """The member, while it is still this very pod and on the node it was placed on."""
    member = books.members.find(preparation.key)
    if member is None or member.pod.metadata.uid != preparation.uid:
        return None
    return member if member.stage is Stage.ASSUMED else None
