"""`muster demo`: plays the story on an embedded cluster in this process and shows what happens.

Readable in 100 columns, coloured on a terminal only; `--json` for machines.  Exit code 1 if anything is not
as the story says.  What is played is `story.py`; the cluster is `runtime/stage.py`.
"""

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from muster.cli.picture import GroupPicture, Picture
    from muster.cli.story import Act, Scene

WIDTH = 100
_COLORS = {"job-a": "cyan", "job-b": "magenta", "job-c": "yellow"}
_FREE = "·"


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print what happened as JSON.")] = False,
) -> None:
    """Play a story in three acts: a deadlock, and how a gang avoids it."""
    from rich.console import Console

    from muster.assembly.cluster_plan import ClusterPlan
    from muster.cli.story import ACTS, NODES, manifests
    from muster.runtime.stage import real_time_stage

    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH, soft_wrap=False)
    stage = real_time_stage(ClusterPlan(manifests(NODES)))
    told: list[dict[str, Any]] = []
    for number, act in enumerate(ACTS, start=1):
        if not as_json:
            show_title(console, number, act)
        for scene in act.scenes(stage):
            told.append(facts_of(number, act, scene))
            if not as_json:
                show_scene(console, scene)
    true = all(claim["holds"] for scene in told for claim in scene["claims"])
    if as_json:
        print(json.dumps({"asTold": true, "seconds": round(stage.elapsed_s, 1), "scenes": told}, indent=2))
    else:
        show_end(console, true=true, elapsed_s=stage.elapsed_s)
    raise typer.Exit(0 if true else 1)


def show_title(console: "Console", number: int, act: "Act") -> None:
    """Print what an act is about."""
    console.print()
    console.print(f"[bold]Act {number}: {act.title}[/bold]")
    console.print(act.setting, style="dim")


def show_scene(console: "Console", scene: "Scene") -> None:
    """Print a moment: every node's GPU, every group, what was said, and which claims are not true."""
    console.print()
    console.print(f"  [bold]{scene.caption}[/bold]")
    console.print("  " + _node_line(scene.picture), soft_wrap=True)
    for group in scene.picture.groups.values():
        console.print("  " + _group_line(group), soft_wrap=True)
    for message in scene.messages:
        for line in textwrap.wrap(message, WIDTH - 4):
            console.print(f"  {line}", style="italic", markup=False)
    for claim in scene.claims:
        mark = "[green]✓[/green]" if claim.holds else "[bold red]✗ NOT SO:[/bold red]"
        console.print(f"    {mark} {claim.text}")


def show_end(console: "Console", *, true: bool, elapsed_s: float) -> None:
    """Print the verdict on the whole story."""
    console.print()
    verdict = "as the story says" if true else "NOT as the story says: see ✗ above"
    console.print(
        f"Everything happened {verdict}; {elapsed_s:.1f} s." if true else f"{verdict}; {elapsed_s:.1f} s."
    )


def facts_of(number: int, act: "Act", scene: "Scene") -> dict[str, Any]:
    """Give a scene as plain data."""
    picture = scene.picture
    return {
        "act": number,
        "title": act.title,
        "scene": scene.caption,
        "allocatable": dict(picture.allocatable),
        "requested": dict(picture.requested),
        "groups": [_group_facts(group) for group in picture.groups.values()],
        "deadlocked": [str(group.group.key) for group in picture.deadlocked],
        "messages": list(scene.messages),
        "claims": [{"text": claim.text, "holds": claim.holds} for claim in scene.claims],
    }


def _group_facts(group: "GroupPicture") -> dict[str, Any]:
    from muster.api.quantity import format_amount

    return {
        "name": str(group.group.key),
        "policy": "gang" if group.group.is_gang else "basic",
        "needed": group.needed,
        "members": group.members,
        "placed": group.placed,
        "succeeded": group.succeeded,
        "canRun": group.can_run,
        "held": {name: format_amount(name, amount) for name, amount in group.held.items()},
        "wanted": {name: format_amount(name, amount) for name, amount in group.wanted.items()},
        "nodes": dict(group.nodes),
    }


def _node_line(picture: "Picture") -> str:
    """One letter for each node: whose worker it runs."""
    from muster.cli.story import GPU

    owner = {node: group.group.key.name for group in picture.groups.values() for node in group.nodes.values()}
    cells = [_letter(owner.get(name)) for name in picture.node_names]
    return f"nodes {' '.join(cells)}   {picture.requested[GPU]} of {picture.allocatable[GPU]} GPUs allocated"


def _letter(name: str | None) -> str:
    if name is None:
        return f"[dim]{_FREE}[/dim]"
    color = _COLORS.get(name, "white")
    return f"[{color}]{name.removeprefix('job-')}[/{color}]"


def _group_line(group: "GroupPicture") -> str:
    name = group.group.key.name
    color = _COLORS.get(name, "white")
    bar = "■" * (group.placed + group.succeeded) + "□" * len(group.waiting)
    policy = f"gang, minCount {group.needed}" if group.group.is_gang else "basic"
    if group.ended:
        state = "done"
    elif group.can_run:
        state = f"runs with {group.placed} of {group.members} workers"
    else:
        state = f"cannot run: {group.placed} of {group.needed} workers placed"
    return f"{name} [{color}]{bar}[/{color}]  {state} ({policy})"
