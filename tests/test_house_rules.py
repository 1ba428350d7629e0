"""The house rules of AGENTS.md that a machine can hold: sizes, names, mirror tests, docs entries.

Every rule lists what breaks it, so a failing test names the file and what to do.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "muster"
LINES_MAX = 500
FUNCTION_LINES_MAX = 60
DRAWERS = re.compile(r"^(utils?|helpers?|common|misc|manager|tools|stuff)(_.*)?$|_(utils?|helpers?|misc)$")

# Modules without a mirror test, each with its reason.
NO_MIRROR: dict[str, str] = {
    "apiserver/exchange.py": "request and answer as values; used by every test of apiserver/",
    "apiserver/kinds.py": "the row type and Protocols of the catalog; no behaviour",
    "cli/options.py": "options without behaviour; docs/command-line.md shows what they make",
    "controllers/ports.py": "types and Protocols only",
    "framework/annotations.py": "names only",
    "framework/events.py": "types only",
    "framework/points.py": "Protocols only; held by tests/unit/testing/test_conformance.py",
    "framework/ports.py": "types only",
}


def tracked_files() -> list[Path]:
    """Give every file of the working tree that is, or could be, committed."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file()]


TRACKED = tracked_files()
PYTHON = [path for path in TRACKED if path.suffix == ".py"]
MODULES = [path for path in PYTHON if SOURCE in path.parents]


def relative(path: Path) -> str:
    """Name a file as a reader of the repository does."""
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    """Read a text file; a binary one counts as empty."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def is_package_only(path: Path) -> bool:
    return path.name == "__init__.py"


# ── sizes and names ──────────────────────────────────────────────────────────────────────────────


def test_modules_stay_under_500_lines() -> None:
    sizes = {relative(path): len(text_of(path).splitlines()) for path in PYTHON}
    assert {name: size for name, size in sizes.items() if size > LINES_MAX} == {}


def test_functions_stay_under_60_lines() -> None:
    long = {
        f"{relative(path)}:{function.name}": length
        for path in PYTHON
        for function in functions_of(tree_of(path))
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_no_file_or_folder_is_a_drawer() -> None:
    parts = {
        (relative(path), part) for path in TRACKED for part in [*path.relative_to(ROOT).parts[:-1], path.stem]
    }
    assert sorted(name for name, part in parts if DRAWERS.match(part)) == []


# ── leftovers ────────────────────────────────────────────────────────────────────────────────────


def lines_matching(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{relative(path)}:{number}: {line.strip()[:100]}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line)
    ]


def test_nothing_is_left_to_do_in_the_tree() -> None:
    marks = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
    code = [
        path for path in TRACKED if path.suffix in {".py", ".sh", ".yaml", ".toml", ".go"} or not path.suffix
    ]
    assert lines_matching(marks, [path for path in code if path.name != "LICENSE"]) == []


def test_no_path_of_one_machine_is_in_the_tree() -> None:
    machine = re.compile(r"(^|[^A-Za-z0-9_./-])/(work|root|farm|home/[a-z]+)/")
    assert lines_matching(machine, TRACKED) == []


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    skips = re.compile(r"pytest\.mark\.(skip|xfail)|pytest\.(skip|xfail)" + r"\(|unittest\.skip")
    tests = [path for path in PYTHON if ROOT / "tests" in path.parents and path != Path(__file__)]
    assert lines_matching(skips, tests) == []


# ── tests and docstrings ─────────────────────────────────────────────────────────────────────────


def test_every_module_has_its_mirror_test() -> None:
    missing = []
    for path in MODULES:
        module = path.relative_to(SOURCE).as_posix()
        mirror = ROOT / "tests" / "unit" / path.relative_to(SOURCE).parent / f"test_{path.name}"
        if not is_package_only(path) and module not in NO_MIRROR and not mirror.exists():
            missing.append(relative(mirror))
    assert missing == []


def test_the_list_of_modules_without_mirror_is_exact() -> None:
    stale = [
        module
        for module in NO_MIRROR
        if not (SOURCE / module).exists()
        or (ROOT / "tests" / "unit" / module).with_name(f"test_{Path(module).name}").exists()
    ]
    assert stale == []


def test_every_unit_test_has_its_module() -> None:
    unit = ROOT / "tests" / "unit"
    lost = [
        relative(path)
        for path in PYTHON
        if unit in path.parents
        and path.name.startswith("test_")
        and not (SOURCE / path.relative_to(unit)).with_name(path.name.removeprefix("test_")).exists()
    ]
    assert lost == []


def test_every_module_says_what_lives_in_it() -> None:
    assert [
        relative(path) for path in PYTHON if text_of(path).strip() and not ast.get_docstring(tree_of(path))
    ] == []


def has_behaviour(node: Definition) -> bool:
    """Tell functions and classes with methods from classes that only list fields."""
    if not isinstance(node, ast.ClassDef):
        return True
    return any(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)


def test_public_functions_and_classes_have_docstrings() -> None:
    bare = [
        f"{relative(path)}:{node.name}"
        for path in MODULES
        for node in tree_of(path).body
        if isinstance(node, Definition)
        and not node.name.startswith("_")
        and has_behaviour(node)
        and not ast.get_docstring(node)
    ]
    assert bare == []


# ── plugins, verbs, settings ─────────────────────────────────────────────────────────────────────

PLUGINS = [path for path in MODULES if path.parent == SOURCE / "plugins" and not is_package_only(path)]


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.stem)
def test_every_plugin_has_an_entry_in_the_docs(path: Path) -> None:
    guide = text_of(ROOT / "docs" / "writing-a-plugin.md")
    assert path.name in guide, f"docs/writing-a-plugin.md says nothing of {path.name}"


@pytest.mark.parametrize("path", PLUGINS, ids=lambda path: path.stem)
def test_every_plugin_is_held_to_the_contract(path: Path) -> None:
    mirror = ROOT / "tests" / "unit" / "plugins" / f"test_{path.name}"
    assert "check_plugin(" in text_of(mirror), f"{relative(mirror)} does not call check_plugin"


# ── the house around the code ────────────────────────────────────────────────────────────────────

SCRIPTS = [path for path in TRACKED if path.parent == ROOT / "scripts" and not path.suffix] + [
    ROOT / ".ci" / "run"
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_run_and_say_what_they_do(path: Path) -> None:
    lines = text_of(path).splitlines()
    assert lines[0].startswith("#!"), "no interpreter line"
    assert path.stat().st_mode & 0o111 == 0o111, "no run bit"
    assert lines[1].startswith(("# ", '"""')), "the second line says what it does"


def test_the_readme_test_command_is_what_ci_runs() -> None:
    assert "scripts/test" in text_of(ROOT / ".ci" / "run")


def test_news_fragments_are_one_sentence_with_a_known_kind() -> None:
    fragments = [path for path in TRACKED if path.parent == ROOT / "changelog.d" and path.name != "README.md"]
    wrong = [
        relative(path)
        for path in fragments
        if not re.fullmatch(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md", path.name)
        or len(text_of(path).strip().split("\n\n")) != 1
    ]
    assert fragments
    assert wrong == []


def test_decisions_are_numbered_without_gaps_and_tell_what_was_given_up() -> None:
    decisions = [path for path in TRACKED if path.parent == ROOT / "docs" / "decisions"]
    numbers = [int(path.name[:4]) for path in decisions]
    assert numbers == list(range(1, len(numbers) + 1))
    parts = ("## Context", "## Choice", "## What we gave up")
    assert [relative(path) for path in decisions if any(part not in text_of(path) for part in parts)] == []


def test_agents_page_fits_one_screenful() -> None:
    assert len(text_of(ROOT / "AGENTS.md").splitlines()) < 80
