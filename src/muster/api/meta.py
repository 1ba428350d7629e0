"""Object metadata and conditions, as far as Muster's own parts read them.

These are the *typed* views used by the scheduler and the runtime client.  Unknown fields are ignored
on decoding; whoever must keep them (the embedded API server, kubectl) works on plain dicts.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from muster.base.numbers import whole_number

# What the API calls int32 and int64: a server that sends more sends no such object.
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class OwnerReference(Struct, frozen=True, gc=False, rename="camel"):
    """An owner of an object; the garbage collector follows these."""

    api_version: str = field(name="apiVersion", default="")
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, rename="camel"):
    """Standard metadata; times stay RFC 3339 text until somebody needs seconds."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None


class Condition(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A condition of a pod, node or group (`lastTransitionTime` as text)."""

    type: str
    status: str = "Unknown"
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: Int64 | None = None


def version_number(version: str) -> int | None:
    """A resourceVersion as a number, as those of one kind compare (KEP-5504); None where it is none."""
    return whole_number(version)


def is_older(found: ObjectMeta, known: ObjectMeta) -> bool:
    """Whether one state of an object came before another; False where that cannot be told."""
    return is_earlier(found.resource_version, known.resource_version)


def is_earlier(version: str, than: str) -> bool:
    """Whether one resourceVersion came before another; False where that cannot be told."""
    now, before = version_number(version), version_number(than)
    return now is not None and before is not None and now < before
