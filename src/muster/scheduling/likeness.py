"""Groups and members that are alike: whoever changes their places in an order changes nothing.

In come casts with members to place; out go kinds of siblings, and keys of members.  Next: `tree.py`, which
tries siblings in other orders, and `questions.py`, which asks nothing where no order can matter.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterator, Sequence
from itertools import chain, permutations

import msgspec
from msgspec.structs import replace

from muster.api.core import Pod
from muster.cluster.devices import Devices, device_claims_of
from muster.cluster.snapshot import Snapshot
from muster.cluster.volumes import Volumes, claims_of
from muster.framework.runner import Runner
from muster.placement.device_needs import find_device_needs
from muster.placement.shapes import ShapeKey, shape_key
from muster.placement.volume_offers import owns
from muster.placement.volume_users import users_of_claims
from muster.scheduling.members import Cast, Member, Stage

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


def shape_of(member: Member, snapshot: Snapshot, runner: Runner) -> ShapeKey:
    """What makes members alike for the rules in play."""
    labels = runner.labels_read(snapshot.label_keys_read)
    return member.shape(metadata=runner.reads_metadata, labels=labels)


def orders_by_shape(members: Sequence[Member], snapshot: Snapshot, runner: Runner) -> Iterator[list[Member]]:
    """The members in every order of their shapes, that of the last first, but for the order given."""
    of_shape: dict[ShapeKey, list[Member]] = defaultdict(list)
    for member in members:
        of_shape[shape_of(member, snapshot, runner)].append(member)
    for order in permutations(reversed(of_shape.values())):
        alike = list(chain.from_iterable(order))
        if alike != list(members):
            yield alike


def kinds_of(casts: Sequence[Cast], snapshot: Snapshot, runner: Runner) -> list[list[Cast]]:
    """The casts by kind, kinds in the order of their first."""
    found: dict[Hashable, list[Cast]] = defaultdict(list)
    for cast in casts:
        found[_likeness(cast, snapshot, runner)].append(cast)
    return list(found.values())


def is_one_of_a_kind(cast: Cast, snapshot: Snapshot, runner: Runner) -> bool:
    """Whether all groups of this tree that have the same parent are alike."""
    children = cast.sorted_children()
    return len(kinds_of(children, snapshot, runner)) < 2 and all(
        is_one_of_a_kind(child, snapshot, runner) for child in children
    )


def _likeness(cast: Cast, snapshot: Snapshot, runner: Runner) -> Hashable:
    """Equal for groups that need the same of the same members, have the same rules, and stand alike."""
    group = cast.group
    rules = (group.needed, group.topology_keys, group.preferred_levels) if group is not None else None
    placed = tuple(sorted(member.node_name for member in cast.of(Stage.BOUND, Stage.ASSUMED)))
    if cast.is_composite:
        children = Counter(_likeness(child, snapshot, runner) for child in cast.children.values())
        return (rules, placed, frozenset(children.items()))
    shapes = Counter(shape_of(member, snapshot, runner) for member in cast.waiting())
    return (rules, placed, cast.missing_count, frozenset(shapes.items()))


def likeness_of(
    member: Member, snapshot: Snapshot, runner: Runner, shared: Container[tuple[str, str]]
) -> ShapeKey:
    """A shape that is equal also for members whose claims differ in nothing but their names.

    `shared`: claims that others may use, too, and so are like no other.
    """
    pod = member.pod
    volumes, claims = snapshot.volumes, claims_of(pod)
    device_claims = [key for _, key in device_claims_of(pod) if key is not None]
    if not claims and not device_claims:
        return shape_of(member, snapshot, runner)
    others = [each for each in pod.spec.volumes or () if not _is_claim(each)]
    bare = replace(pod, spec=replace(pod.spec, volumes=others, resource_claims=None))
    labels = runner.labels_read(snapshot.label_keys_read)
    facts: list[object] = [
        shape_key(bare, metadata=runner.reads_metadata, labels=labels),
        [key if key in shared else _volume_facts(pod, key, is_own, volumes) for key, is_own in claims],
        [key if key in shared else _device_facts(key, snapshot.devices) for key in device_claims],
        bool(find_device_needs(pod, snapshot.devices, {}).refusal),
    ]
    return _ENCODER.encode(facts)


def shared_claims(pods: Sequence[Pod], snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Claims, for volumes or devices, that more than one of these pods uses, or somebody who is placed."""
    counts = Counter(key for pod in pods for key, _ in claims_of(pod))
    device_counts = Counter(key for pod in pods for _, key in device_claims_of(pod) if key is not None)
    both = (*counts.items(), *device_counts.items())
    shared = frozenset(key for key, count in both if count > 1)
    return shared | frozenset(counts.keys() & users_of_claims(snapshot).keys()) if counts else shared


def _is_claim(volume: dict[str, object]) -> bool:
    return volume.get("persistentVolumeClaim") is not None or volume.get("ephemeral") is not None


def _volume_facts(pod: Pod, key: tuple[str, str], is_own: bool, volumes: Volumes) -> object:
    """All that decides where a claim's volume may be; its name where it is not known or has one.

    `is_own`: it is to be the pod's alone, made for it.
    """
    claim = volumes.claims.get(key)
    if claim is None or key in volumes.choices or key in volumes.kept_for or claim.spec.volume_name:
        return key
    is_leaving = claim.metadata.deletion_timestamp is not None
    is_refused = is_own and not owns(pod, claim)
    return claim.spec, claim.class_name, claim.selected_node, claim.status.phase, is_leaving, is_refused


def _device_facts(key: tuple[str, str], devices: Devices) -> object:
    claim = devices.claims.get(key)
    if claim is None or devices.allocation_of(key) is not None:
        return key
    return claim.spec, claim.metadata.deletion_timestamp is not None
