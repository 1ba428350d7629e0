"""`muster run`: schedule on a real cluster, as the process that a Deployment keeps alive.

Reads the options and hands them to `runtime/process.py`; what it says goes to stderr, a line an event.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.options import Context, Kubeconfig

if TYPE_CHECKING:
    from muster.assembly.config import Config

METRICS_ADDRESS = "127.0.0.1:10261"


def run(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Whose pods to schedule; repeatable.  [default: muster]"),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plugins, queue times and names; --scheduler-name goes before it."),
    ] = None,
    leader_elect: Annotated[
        str,
        typer.Option(
            metavar="BOOL",
            help="Hold a lease, so that only one of several processes schedules.",
        ),
    ] = "true",
    leader_elect_resource_namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Where the lease is.")
    ] = "kube-system",
    leader_elect_resource_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the lease is called.  [default: one lease a scheduler name]"),
    ] = None,
    metrics_bind_address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Where /metrics, /healthz, /livez and /readyz are; 0 for nowhere."
        ),
    ] = METRICS_ADDRESS,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr.")] = False,
) -> None:
    """Schedule pods and pod groups on a Kubernetes 1.37 cluster."""
    import logging

    from muster.runtime.kubeconfig import find_access
    from muster.runtime.logs import set_up_logging
    from muster.runtime.metrics import parse_address
    from muster.runtime.process import RunSettings, run_process

    set_up_logging(logging.DEBUG if verbose else logging.INFO)
    settings = RunSettings(
        config=settings_of(config, scheduler_name),
        elects_leader=parse_boolean(leader_elect, "--leader-elect"),
        lease_namespace=leader_elect_resource_namespace,
        lease_name=leader_elect_resource_name,
        metrics_address=parse_address(metrics_bind_address),
    )
    raise typer.Exit(run_process(settings, find_access(kubeconfig, context=context)))


def settings_of(file: Path | None, names: list[str] | None) -> "Config":
    """Give the scheduler's configuration; on a real cluster the stock scheduler's pods are its own.

    Raises   ConfigError naming file and field, or option.
    """
    from msgspec.structs import replace

    from muster.cli.settings import read_settings

    default = ("muster",) if file is None else None
    config = read_settings(file, tuple(names) if names else default)
    return replace(config, scheduler_names=check_names(config.scheduler_names))


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Give the scheduler names without repeats.  Raises ConfigError for one that no pod or lease can have."""
    import re

    from muster.base.errors import ConfigError

    for name in names:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", name):
            raise ConfigError(
                f"needs lower-case letters, digits, '-' and '.', got {name!r}", path="--scheduler-name"
            )
    return tuple(dict.fromkeys(names))


def parse_boolean(text: str, option: str) -> bool:
    """Read `--option=false` as the stock components do.  Raises ConfigError."""
    from muster.base.errors import ConfigError

    known = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    if text.lower() not in known:
        raise ConfigError(f"needs true or false, got {text!r}", path=option)
    return known[text.lower()]
