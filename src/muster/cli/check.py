"""`muster check`: say in plain words what a cluster lacks for Muster.

Reads the options, asks `runtime/inspection.py`, and prints what it found; exit code 1 if something is
missing.
"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from muster.base.printing import printable
from muster.cli.options import Context, Kubeconfig

if TYPE_CHECKING:
    from muster.runtime.inspection import Finding

MARKS = {"ok": "ok      ", "missing": "MISSING ", "unknown": "unknown "}
WIDTH = 100


def check(
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The name Muster is to serve; repeatable.  [default: muster]"),
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Where to try, as a dry run, a pod that names a group.")
    ] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what a cluster lacks for Muster; exit code 1 if anything is missing."""
    import asyncio

    from muster.cli.run import check_names
    from muster.runtime.client import ApiClient
    from muster.runtime.clock import Clock
    from muster.runtime.inspection import Level, inspect
    from muster.runtime.kubeconfig import find_access

    names = check_names(scheduler_name or ["muster"])
    access = find_access(kubeconfig, context=context)
    clock = Clock()

    async def look() -> "list[Finding]":
        async with ApiClient(access, now_s=clock.now_s, timeout_s=10.0) as client:
            return await inspect(client, scheduler_names=names, namespace=namespace, now_s=clock.now_s)

    findings = asyncio.run(look())
    print(as_json_text(findings) if as_json else as_words(findings))
    if any(finding.level is Level.MISSING for finding in findings):
        raise typer.Exit(1)


def as_json_text(findings: "list[Finding]") -> str:
    """The findings for machines: `ok` is whether nothing is missing."""
    from muster.runtime.inspection import Level

    rows = [
        {"check": finding.check, "level": finding.level.value, "text": finding.text, "cure": finding.cure}
        for finding in findings
    ]
    return json.dumps(
        {"ok": not any(finding.level is Level.MISSING for finding in findings), "findings": rows}, indent=2
    )


def as_words(findings: "list[Finding]") -> str:
    """The findings for people, the cure under each fault, and one sentence at the end."""
    import textwrap

    from muster.runtime.inspection import Level

    indent = " " * len(MARKS["ok"])
    lines = []
    for finding in findings:
        mark = MARKS[finding.level.value]
        lines += textwrap.wrap(
            printable(finding.text),
            WIDTH,
            initial_indent=mark,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        if finding.cure:
            lines += textwrap.wrap(
                f"→ {printable(finding.cure)}",
                WIDTH,
                initial_indent=indent,
                subsequent_indent=indent + "  ",
                break_on_hyphens=False,
            )
    missing = sum(finding.level is Level.MISSING for finding in findings)
    unknown = sum(finding.level is Level.UNKNOWN for finding in findings)
    end = f"{missing} missing" if missing else "nothing is missing"
    lines += ["", end + (f", {unknown} could not be seen" if unknown else "")]
    return "\n".join(lines)
