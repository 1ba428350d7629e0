"""A case as data, and the files that hold them."""

from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.conformance.placement import case_fields, is_placement_case

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
    """The cases of one file, in order, whichever of the two notations it is in."""
    with file.open(encoding="utf-8") as text:
        cases = yaml.safe_load(text)["cases"]
    return msgspec.convert([case_fields(raw) if is_placement_case(raw) else raw for raw in cases], list[Case])
