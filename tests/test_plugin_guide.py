"""docs/writing-a-plugin.md: its code runs, and its table is the default profile."""

import re
from pathlib import Path
from typing import Any

from muster.assembly.profiles import BUILT_IN

GUIDE = (Path(__file__).parent.parent / "docs" / "writing-a-plugin.md").read_text(encoding="utf-8")


def test_the_code_of_the_guide_runs_and_its_tests_pass() -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 4
    for test in tests:
        test()


def test_the_table_lists_the_default_profile_in_its_order() -> None:
    rows = re.findall(r"^\| (\w+) \| `(\w+)\.py` \|", GUIDE, flags=re.MULTILINE)
    assert [name for name, _ in rows] == list(BUILT_IN)
    modules = {name: getattr(factory, "__module__", "") for name, factory in BUILT_IN.items()}
    assert {name: f"muster.plugins.{stem}" for name, stem in rows} == modules
