"""`muster explain NAMESPACE/GROUP`: why a pod group is pending, out of what its API server tells.

Fetches the objects; what they mean is `picture.py`, and in the group's own conditions and events.
"""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.base.errors import ApiError, ConfigError

if TYPE_CHECKING:
    from muster.cli.picture import GroupPicture, Picture

GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
_CONDITIONS = ("PodGroupInitiallyScheduled", "muster.dev/Waiting", "DisruptionTarget")
_EVENTS_SHOWN = 5
_NAMES_SHOWN = 6


def explain(
    group: Annotated[str, typer.Argument(metavar="NAMESPACE/GROUP", help="Which pod group.")],
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="How to reach the cluster.  [default: $KUBECONFIG, ~/.kube/config]"
        ),
    ] = None,
) -> None:
    """Say what a pod group holds, what it needs, and why it waits."""
    namespace, name = split_name(group)
    from muster.cli.picture import take_picture
    from muster.framework.groups import ObjectKey

    lists = asyncio.run(_fetch(kubeconfig, namespace, name))
    picture = take_picture(lists["nodes"], lists["pods"], lists["groups"])
    found = picture.groups.get(ObjectKey(namespace, name))
    if found is None:
        near = [str(key) for key in picture.groups if key.name == name or key.namespace == namespace]
        also = f"; there is {', '.join(near[:_NAMES_SHOWN])}" if near else ""
        raise ApiError(f"no pod group {namespace}/{name}{also}", code=404, reason="NotFound")
    print("\n".join(lines_of(found, picture, lists["events"])))


def split_name(text: str) -> tuple[str, str]:
    """Give namespace and name; a bare name means the namespace "default".

    Raises   ConfigError if the text is neither.
    """
    parts = text.split("/")
    if len(parts) > 2 or not all(parts):
        raise ConfigError(
            f"{text!r} is not NAMESPACE/GROUP", path="muster explain", hint="for example default/job-a"
        )
    return ("default", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


async def _fetch(kubeconfig: str | None, namespace: str, name: str) -> dict[str, list[dict[str, Any]]]:
    import msgspec

    from muster.runtime.client import ApiClient
    from muster.runtime.clock import Clock
    from muster.runtime.kubeconfig import find_access

    selector = f"regarding.kind=PodGroup,regarding.name={name}"
    paths = {
        "nodes": ("/api/v1/nodes", {}),
        "pods": ("/api/v1/pods", {}),
        "groups": (GROUPS, {}),
        "events": (f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", {"fieldSelector": selector}),
    }
    async with ApiClient(find_access(kubeconfig), now_s=Clock().now_s) as client:
        answers = {key: await client.call("GET", path, query=query) for key, (path, query) in paths.items()}
    return {key: msgspec.json.decode(answer.body)["items"] or [] for key, answer in answers.items()}


def lines_of(found: "GroupPicture", picture: "Picture", events: list[dict[str, Any]]) -> list[str]:
    """Give the explanation, a line each: state, members, amounts, conditions, deadlock, latest events."""
    from muster.api.quantity import format_amount
    from muster.cli.picture import write_amounts

    group = found.group
    policy = f"gang, minCount {group.min_count}" if group.is_gang else "basic"
    lines = [f"{group.key}  ({policy}, priority {group.priority})  {_state(found)}"]
    counts = {
        "placed": found.placed,
        "waiting": len(found.waiting),
        "succeeded": found.succeeded,
        "failed": found.failed,
    }
    named = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "none created yet"
    lines.append(f"  members    {found.members}: {named}" if found.members else f"  members    {named}")
    if found.held:
        lines.append(f"  holds      {write_amounts(found.held)}")
    if found.wanted:
        lines.append(f"  needs      {write_amounts(found.wanted)} more")
    for resource in found.wanted:
        free, total = picture.free(resource), picture.allocatable.get(resource, 0)
        amounts = f"{format_amount(resource, free)} of {format_amount(resource, total)}"
        lines.append(f"  cluster    {amounts} {resource} free on {len(picture.node_names)} nodes")
    lines += [
        f"  {condition.type}={condition.status} {condition.reason or ''}: {condition.message or ''}"
        for condition in group.conditions
        if condition.type in _CONDITIONS
    ]
    if found.stuck and found.placed:
        lines.append(f"  {picture.explain_deadlock()}")
    latest = sorted(events, key=_time_of)[-_EVENTS_SHOWN:]
    lines += [
        f"  event      {_time_of(event)} {event.get('type')} {event.get('reason')}: {event.get('note', '')}"
        for event in latest
    ]
    return lines


def _state(found: "GroupPicture") -> str:
    if found.ended:
        return "all members are done"
    if found.can_run:
        return f"can run: {found.placed} placed of {found.needed} needed"
    if found.members - found.failed < found.needed:
        return f"waits for members: {found.members - found.failed} of {found.needed} exist"
    return f"cannot run yet: {found.placed + found.succeeded} of {found.needed} needed members have a node"


def _time_of(event: dict[str, Any]) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("eventTime"), event.get("deprecatedLastTimestamp"))
    return str(next((time for time in times if time), ""))
