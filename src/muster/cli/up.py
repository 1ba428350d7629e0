"""`muster up`: a whole cluster in this process; API server, controllers, kubelets and scheduler.

Reads the options, says what is wrong with them, and tells the user how to get in once the server answers.
What runs is `runtime/embedded.py`.
"""

import json
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from muster.base.errors import ConfigError
from muster.cli.run import check_names
from muster.cli.settings import read_settings

if TYPE_CHECKING:
    from muster.runtime.embedded import Address


def up(
    nodes: Annotated[
        str, typer.Option(metavar="N|FILE", help="How many nodes, or a file of Node manifests.")
    ] = "3",
    node_shape: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE",
            help="What each of N nodes offers.  [default: cpu=8,memory=64Gi,nvidia.com/gpu=1]",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to serve on; 0 takes a free one.")
    ] = 0,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to serve on; only this machine unless said.")
    ] = "127.0.0.1",
    kubeconfig_out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write the kubeconfig once the server is ready.")
    ] = Path("muster.kubeconfig"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON when ready.")] = False,
    no_kubelets: Annotated[
        bool, typer.Option("--no-kubelets", help="Nodes exist, but nothing runs on them.")
    ] = False,
    no_scheduler: Annotated[
        bool, typer.Option("--no-scheduler", help="Leave the scheduler out; pods wait for one from outside.")
    ] = False,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Whose pods to schedule; repeatable.  [default: muster, default-scheduler]"
        ),
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(metavar="NAME=BOOL,...", help="Kubernetes feature gates to switch on or off.")
    ] = "",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plugins and times of the scheduler.")
    ] = None,
) -> None:
    """Start a Kubernetes 1.37 cluster with Muster in this process."""
    names = check_names(scheduler_name) if scheduler_name else None
    manifests = read_nodes(nodes, node_shape)
    gates = read_gates(feature_gates)
    check_kubeconfig_path(kubeconfig_out)
    from muster.assembly.cluster_plan import ClusterPlan
    from muster.runtime.embedded import Plan, run

    scheduler = None if no_scheduler else read_settings(config, names)
    cluster = ClusterPlan(manifests, nodes, kubelets=not no_kubelets, scheduler=scheduler, gates=gates)
    served = () if scheduler is None else scheduler.scheduler_names

    def say_ready(address: "Address") -> None:
        if as_json:
            print(_facts(address.url, kubeconfig_out, len(manifests), served))
        else:
            print(_greeting(address.url, kubeconfig_out, len(manifests), served))
        sys.stdout.flush()

    run(Plan(cluster, host=listen, port=port, kubeconfig=kubeconfig_out), say_ready)


def read_gates(text: str) -> frozenset[str]:
    """Give the gates that are on: the usual ones but for what `--feature-gates` says, as on stock.

    Raises   ConfigError naming the gate and the cure.
    """
    from muster.apiserver.server import DEFAULT_GATES, GATES

    gates = set(DEFAULT_GATES)
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in GATES or value not in ("true", "false"):
            hint = f"give NAME=true or NAME=false, NAME one of {', '.join(sorted(GATES))}"
            raise ConfigError(f"cannot read {part!r}", path="--feature-gates", hint=hint)
        (gates.add if value == "true" else gates.discard)(name)
    return frozenset(gates)


def read_nodes(nodes: str, shape: str | None) -> list[dict[str, Any]]:
    """Give the Node objects that `--nodes` and `--node-shape` ask for.

    Raises   ConfigError naming the option, or file, document and field, and the cure.
    """
    from muster.assembly.node_manifests import DEFAULT_SHAPE, nodes_from_shape, nodes_from_text

    try:
        count = int(nodes)
    except ValueError:
        if shape is not None:
            hint = "leave it out, or give --nodes a number"
            raise ConfigError("says nothing beside a file of nodes", path="--node-shape", hint=hint) from None
        return nodes_from_text(_read(nodes), nodes)
    return nodes_from_shape(count, DEFAULT_SHAPE if shape is None else shape)


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        hint = "give a number of nodes, or a file of Node manifests"
        raise ConfigError(error.strerror or str(error), path=f"--nodes: {name}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise ConfigError("not text in UTF-8", path=f"--nodes: {name}", hint="write it as YAML") from error


def check_kubeconfig_path(path: Path) -> None:
    """Make sure that writing `path` works and destroys nothing; an old file of ours is taken away.

    Raises   ConfigError where the folder is missing, or the file leads to some other cluster, or to one of
             ours that still runs.
    """
    where = f"--kubeconfig-out: {path}"
    if not path.parent.is_dir():
        raise ConfigError("its folder does not exist", path=where, hint=f"make it: mkdir -p {path.parent}")
    if path.is_dir():
        raise ConfigError("is a folder", path=where, hint="give the name of a file")
    if not path.exists():
        return
    if not path.is_file():
        raise ConfigError("is not a regular file", path=where, hint="give the name of a file")
    if path.stat().st_size:
        server = _find_server(path)
        if server is None:
            raise ConfigError(
                "exists and was not written by muster up", path=where, hint="choose another name"
            )
        if _answers(server):
            raise ConfigError("leads to a muster up that still runs", path=where, hint="choose another name")
    path.unlink()


def _find_server(path: Path) -> str | None:
    """The server that a kubeconfig of ours leads to; None if it is not ours."""
    try:
        (cluster,) = json.loads(path.read_text(encoding="utf-8"))["clusters"]
        return str(cluster["cluster"]["server"]) if cluster["name"] == "muster" else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _answers(server: str) -> bool:
    """Whether somebody listens there."""
    address = urlsplit(server)
    try:
        with socket.create_connection((address.hostname or "", address.port or 443), timeout=1):
            return True
    except (OSError, ValueError):
        return False


def _facts(url: str, kubeconfig: Path, count: int, served: tuple[str, ...]) -> str:
    facts = {"ready": True, "server": url, "kubeconfig": str(kubeconfig)}
    return json.dumps({**facts, "nodes": count, "schedulerNames": served})


def _greeting(url: str, kubeconfig: Path, node_count: int, scheduler_names: tuple[str, ...]) -> str:
    return "\n".join(
        [
            "Muster is up: a Kubernetes 1.37 cluster in this process",
            f"  server      {url}",
            f"  kubeconfig  {kubeconfig}",
            f"  nodes       {node_count}",
            f"  scheduler   {', '.join(scheduler_names) or 'none'}",
            f"try: kubectl --kubeconfig {kubeconfig} get nodes",
            "stop with Ctrl-C",
        ]
    )
