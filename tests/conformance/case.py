"""A case as data, and the files that hold them."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

CASE_FILES = Path(__file__).parent / "cases"


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scenario on an empty cluster.

    Each step is one verb with its arguments.  `needs` are API paths that the server must serve; `differs`
    says where the stock scheduler is wrong.
    """

    id: str
    title: str
    steps: list[dict[str, Any]]
    nodes: dict[str, dict[str, Any] | None] = {}
    needs: list[str] = []
    differs: str = ""

    @property
    def restarts_scheduler(self) -> bool:
        """Whether somebody must be able to stop and start the scheduler."""
        return any("scheduler" in step for step in self.steps)


def load_cases(file: Path) -> list[Case]:
    """The cases of one file, in order."""
    with file.open(encoding="utf-8") as text:
        return msgspec.convert(yaml.safe_load(text)["cases"], list[Case])
