"""Options that several verbs share: how to reach a cluster."""

from typing import Annotated

import typer

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="How to reach the cluster.  [default: $KUBECONFIG, ~/.kube/config, in-cluster files]",
    ),
]
Context = Annotated[
    str, typer.Option(metavar="NAME", help="Which context of the kubeconfig, if not its current one.")
]
