"""What the core knows of pod groups, whatever API they came by.

A dialect (`muster.dialects`) translates objects of one API into these types and back; nothing here or
above knows a field name of any API.  Next: `framework/ports.py`, the events that carry them.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from muster.api.core import Pod, PodClaim
from muster.api.meta import Condition


class ObjectKey(NamedTuple):
    """Namespace and name; for cluster-scoped objects the namespace is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


PodKey = ObjectKey
GroupKey = ObjectKey


def annotation_path(name: str) -> str:
    """The field of an object that an annotation is, as the user wrote it."""
    return f"metadata.annotations[{name}]"


class UnsupportedField(Struct, frozen=True, gc=False):
    """Something the user asked for that this Muster cannot honour.

    The group or pod is held because of it; only what says nothing where it stands (`PodSeen.idle`) is told.
    `path` is the field as the user wrote it (`spec.resourceClaims`), `why` one clause in plain words.
    """

    path: str
    why: str


BIND_TIMEOUT_S = 300.0


class Terms(Struct, frozen=True, gc=False):
    """What the owner of a group wants when it cannot be whole.

    `bind_timeout_s`: so long a gang may hold room before it has started (None: as its tree says, else
    `BIND_TIMEOUT_S`); `ready_timeout_s`: so long a started one may take until its minimum is ready (None: for
    ever).  `on_member_loss` is one of `ON_MEMBER_LOSS`; `releases_bare_pods`: pods that no controller would
    make again may be deleted, too.
    """

    bind_timeout_s: float | None = None
    ready_timeout_s: float | None = None
    on_member_loss: str = "replace"
    releases_bare_pods: bool = False


ON_MEMBER_LOSS = ("replace", "hold", "restart", "release")


class Group(Struct, frozen=True):
    """One pod group, or a composite group whose members are groups (`is_composite`).

    `min_count` is None for the basic policy; it counts pods, or the groups of a composite.  All of
    `topology_keys` hold, widest first; `parent` is a composite group's key.  `conditions` are those last seen
    on the object, so that the core writes only what changes.  `version` is the resourceVersion the group was
    read at, `generation` counts changes of its spec.  `created_s` is Unix seconds.  `preferred_levels` are
    label keys, widest first, of whose domains the members should occupy few; `rank_key` is the label or
    annotation by which they are laid along them.  `claims` are reserved for the group, not for its pods.
    """

    key: GroupKey
    uid: str
    version: str = ""
    generation: int = 0
    min_count: int | None = None
    priority: int = 0
    preemption_policy: str | None = None
    disruption_mode: str = "single"
    topology_keys: tuple[str, ...] = ()
    parent: GroupKey | None = None
    created_s: float = 0.0
    deleting: bool = False
    annotations: tuple[tuple[str, str], ...] = ()
    conditions: tuple[Condition, ...] = ()
    unsupported: tuple[UnsupportedField, ...] = ()
    is_composite: bool = False
    preferred_levels: tuple[str, ...] = ()
    rank_key: str = ""
    terms: Terms = Terms()
    claims: tuple[PodClaim, ...] = ()

    @property
    def is_gang(self) -> bool:
        """Whether the policy is gang rather than basic."""
        return self.min_count is not None

    @property
    def needed(self) -> int:
        """Least members (of a composite: groups) that must be placed at once: `min_count`, 1 for basic."""
        return self.min_count if self.min_count is not None else 1

    def find_condition(self, type_: str) -> Condition | None:
        """The condition of this type as last seen on the object."""
        return next((c for c in self.conditions if c.type == type_), None)


class Subgroup(Struct, frozen=True):
    """A group below another in a tree, as far as a quorum asks: `known` members wait or are placed.

    A composite has `children` and knows no members of its own.
    """

    group: Group
    known: int = 0
    children: tuple["Subgroup", ...] = ()


def explain_missing(count: int, known: Iterable[Pod]) -> str:
    """Say where to look for why `count` members were not created, by who made those that are `known`.

    Muster sees neither quotas nor webhooks: who was refused has said so.  "" for pods without a controller.
    """
    owners = (owner for pod in known for owner in pod.metadata.owner_references or () if owner.controller)
    maker = next(owners, None)
    if maker is None:
        return ""
    others = "other one is" if count == 1 else f"other {count} are"
    return f"if the {others} refused, by a quota or a webhook, the events of {maker.kind} {maker.name} say so"
