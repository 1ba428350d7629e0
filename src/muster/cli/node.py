"""`muster node stop|start NAME`: silence the simulated kubelet of a node of `muster up`, or wake it again.

Only writes the annotation that `controllers/kubelet.py` and `controllers/node_lifecycle.py` look at: the node
turns NotReady, is tainted, and its pods are evicted when their tolerations end.
"""

import asyncio
import json
from typing import Annotated, Any

import typer

from muster.base.errors import ConfigError
from muster.cli.options import Kubeconfig

app = typer.Typer(help="Stop or start a simulated node of `muster up`.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Which node.")]


@app.command()
def stop(name: Name, kubeconfig: Kubeconfig = None) -> None:
    """Let the node's kubelet fall silent: NotReady, tainted, pods evicted after their tolerations."""
    from muster.controllers.node_lifecycle import SILENCE_S

    asyncio.run(_patch(name, kubelet_patch(stopped=True), kubeconfig))
    print(f"node/{name} stopped; NotReady after {SILENCE_S:g} s of silence")


@app.command()
def start(name: Name, kubeconfig: Kubeconfig = None) -> None:
    """Wake the node's kubelet again."""
    asyncio.run(_patch(name, kubelet_patch(stopped=False), kubeconfig))
    print(f"node/{name} started")


def kubelet_patch(*, stopped: bool) -> dict[str, Any]:
    """Give the merge patch of a Node that stops its kubelet, or starts it."""
    from muster.controllers.kubelet import KUBELET_ANNOTATION, STOPPED

    return {"metadata": {"annotations": {KUBELET_ANNOTATION: STOPPED if stopped else None}}}


def check_embedded(version: bytes, server: str) -> None:
    """Make sure that what a server says of itself at /version is what `muster up` says.

    Raises   ConfigError with the cure: a real kubelet does not heed the annotation.
    """
    from muster.apiserver.documents import EMBEDDED

    try:
        platform = json.loads(version).get("platform")
    except (ValueError, AttributeError):
        platform = None
    if platform != EMBEDDED:
        hint = "on a real cluster: kubectl drain NAME, kubectl uncordon NAME"
        raise ConfigError(f"{server} is no muster up: only simulated kubelets can be stopped", hint=hint)


async def _patch(name: str, patch: dict[str, Any], kubeconfig: str | None) -> None:
    from muster.runtime.client import ApiClient
    from muster.runtime.clock import Clock
    from muster.runtime.kubeconfig import find_access

    async with ApiClient(find_access(kubeconfig), now_s=Clock().now_s) as client:
        check_embedded((await client.call("GET", "/version")).body, client.server)
        await client.call(
            "PATCH", f"/api/v1/nodes/{name}", patch, content_type="application/merge-patch+json"
        )
