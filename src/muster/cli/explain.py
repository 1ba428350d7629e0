"""`muster explain NAMESPACE/GROUP`: why a pod group is pending, out of what its API server tells.

Fetches the objects; what they mean is `picture.py`, and in the group's own conditions and events.
"""

import asyncio
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.base.errors import ApiError, ConfigError
from muster.base.printing import printable
from muster.cli.options import Kubeconfig

if TYPE_CHECKING:
    from muster.cli.picture import GroupPicture, Picture

WIDTH = 100
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/podgroups"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
_CONDITIONS = ("PodGroupInitiallyScheduled", "muster.dev/Whole", "muster.dev/Waiting", "DisruptionTarget")
_EVENTS_SHOWN = 5
_NAMES_SHOWN = 6


def explain(
    group: Annotated[str, typer.Argument(metavar="NAMESPACE/GROUP", help="Which pod group.")],
    kubeconfig: Kubeconfig = None,
) -> None:
    """Say what a pod group holds, what it needs, and why it waits."""
    namespace, name = split_name(group)
    picture, events = asyncio.run(_look(kubeconfig, namespace, name))
    found = find_group(picture, namespace, name)
    print("\n".join(lines_of(found, picture, events)))


def find_group(picture: "Picture", namespace: str, name: str) -> "GroupPicture":
    """Give the group.  Raises ApiError that names others of like name where there is none."""
    from muster.framework.groups import ObjectKey

    found = picture.groups.get(ObjectKey(namespace, name))
    if found is None:
        near = [str(key) for key in picture.groups if key.name == name or key.namespace == namespace]
        also = f"; there is {', '.join(near[:_NAMES_SHOWN])}" if near else ""
        raise ApiError(f"no pod group {namespace}/{name}{also}", code=404, reason="NotFound")
    return found


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


async def _look(kubeconfig: str | None, namespace: str, name: str) -> "tuple[Picture, list[dict[str, Any]]]":
    """Fetch the cluster, and the events of the group and of the first member that waits."""
    from muster.cli.picture import take_picture
    from muster.runtime.client import ApiClient, ItemList
    from muster.runtime.clock import Clock
    from muster.runtime.kubeconfig import find_access

    async with ApiClient(find_access(kubeconfig), now_s=Clock().now_s) as client:

        async def items(path: str, **query: str) -> list[dict[str, Any]]:
            answer = await client.call("GET", path, query=query)
            return answer.read(ItemList).items or []

        nodes, pods, groups = [await items(path) for path in (NODES, PODS, GROUPS)]
        picture = take_picture(nodes, pods, groups)
        found = find_group(picture, namespace, name)
        about = [("PodGroup", name), *(("Pod", member) for member in found.waiting[:1])]
        events: list[dict[str, Any]] = []
        for kind, subject in about:
            selector = f"regarding.kind={kind},regarding.name={subject}"
            events += await items(EVENTS.format(namespace), fieldSelector=selector)
    return picture, events


def lines_of(found: "GroupPicture", picture: "Picture", events: list[dict[str, Any]]) -> list[str]:
    """Give the explanation, readable in 100 columns: state, members, amounts, reasons, deadlock, events."""
    group = found.group
    policy = f"gang, minCount {group.min_count}" if group.is_gang else "basic"
    lines = [printable(f"{group.key}  ({policy}, priority {group.priority})  {_state(found)}")]
    for label, text in _facts(found, picture, events):
        start = f"  {label:<11}"
        lines += textwrap.wrap(
            printable(text),
            WIDTH,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_long_words=False,
        )
    return lines


def _facts(
    found: "GroupPicture", picture: "Picture", events: list[dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    from muster.api.quantity import format_amount
    from muster.cli.picture import write_amounts

    counts = {
        "placed": found.placed,
        "waiting": len(found.waiting),
        "succeeded": found.succeeded,
        "failed": found.failed,
    }
    named = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    yield "members", f"{found.members}: {named}" if named else "none created yet"
    if found.held:
        yield "holds", write_amounts(found.held)
    if found.wanted:
        yield "needs", f"{write_amounts(found.wanted)} more"
    for resource in found.wanted:
        free, total = picture.free(resource), picture.allocatable.get(resource, 0)
        amounts = f"{format_amount(resource, free)} of {format_amount(resource, total)}"
        yield "cluster", f"{amounts} {resource} free on {len(picture.node_names)} nodes"
    said: set[str] = set()
    for condition in found.group.conditions:
        message = condition.message or ""
        if condition.type in _CONDITIONS and (not message or message not in said):
            yield (
                "condition",
                f"{condition.type}={condition.status} {condition.reason or ''}: {message}".rstrip(": "),
            )
            said.add(message)
    for text in found.ignored:
        yield "ignored", text
    if found.stuck and found.placed:
        yield "why", picture.explain_deadlock()
    for event in sorted(events, key=_time_of)[-_EVENTS_SHOWN:]:
        about = (event.get("regarding") or {}).get("name", "")
        note = event.get("note", "")
        yield (
            "event",
            f"{_time_of(event)[:19]} {about} {event.get('reason')}"
            + (f": {note}" if note not in said else ""),
        )


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
