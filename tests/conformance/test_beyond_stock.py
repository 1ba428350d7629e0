"""The page on what differs from stock names every case that says `differs`, and none that does not."""

import re
from pathlib import Path

from tests.conformance.case import CASE_FILES, load_cases

PAGE = Path(__file__).parent.parent.parent / "docs" / "beyond-stock.md"


def test_every_case_that_differs_from_stock_is_explained() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Conformance cases that say `differs`")[2]
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    named = [case_id for row in rows[1:] for case_id in re.split(r", ", row.split("|")[1].strip())]
    differing = [
        case.id for file in sorted(CASE_FILES.glob("*.yaml")) for case in load_cases(file) if case.differs
    ]
    assert sorted(named) == sorted(differing)
