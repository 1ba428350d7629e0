#!/usr/bin/env python3
"""Write the generated pages: docs/command-line.md, out of the commands themselves.

    scripts/docs          writes them and checks the links
tests/test_docs.py fails where a page is not what this would write.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from muster.cli.main import app

ROOT = Path(__file__).parent.parent
WIDTH = 96

INTRODUCTION = """\
# Command line

Written by `scripts/docs` out of the commands themselves. Exit codes: 0 done; 1 the answer is no (the server
refused, the story did not come true); 2 the user's words or files are wrong, with one line that says what
and, where known, a hint.
"""


def command_line_page() -> str:
    """Give the text of docs/command-line.md."""
    sections = [INTRODUCTION]
    for name, text in _helps(typer.main.get_command(app), "muster", None):
        sections.append(f"## {name}\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(sections)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """Walk a command and its subcommands, giving each one's name and help."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=WIDTH)
    yield context.command_path, command.get_help(context)
    for verb, subcommand in getattr(command, "commands", {}).items():
        yield from _helps(subcommand, verb, context)


PAGES = {"docs/command-line.md": command_line_page}


def main() -> None:
    """Write every generated page."""
    for path, make in PAGES.items():
        (ROOT / path).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
