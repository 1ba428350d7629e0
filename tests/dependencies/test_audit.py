"""The check for known vulnerabilities, on answers as pip-audit gives them."""

import json

import pytest
from tests.dependencies.audit import (
    SOUND,
    UNASKED,
    VULNERABLE,
    Answer,
    Package,
    combine,
    pins_of,
    read_answer,
    report,
)

SOUND_ONE = {"name": "click", "version": "8.5.1", "vulns": []}
ADVISORY = {"id": "PYSEC-2026-1", "fix_versions": ["3.14.6"], "aliases": ["CVE-2026-1"], "description": "…"}
BAD_ONE = {"name": "aiohttp", "version": "3.14.5", "vulns": [ADVISORY]}
SKIPPED = {
    "name": "click",
    "skip_reason": "Dependency not found on PyPI and could not be audited: click (8.5.1)",
}
CLICK, AIOHTTP = Package("click", "8.5.1"), Package("aiohttp", "3.14.5")


def judge(*found: dict[str, object], strict: bool = False) -> tuple[list[str], int]:
    answers = read_answer(json.dumps({"dependencies": found, "fixes": []}))
    return report(combine([CLICK, AIOHTTP], [answers]), strict=strict)


def test_a_known_vulnerability_fails_and_is_named_with_its_cure() -> None:
    lines, code = judge(SOUND_ONE, BAD_ONE)
    assert code == VULNERABLE
    assert lines[0] == "aiohttp 3.14.5: PYSEC-2026-1 (fixed in 3.14.6)"
    assert "scripts/lock --upgrade-package" in lines[1]


def test_nothing_known_of_any_package_is_well() -> None:
    lines, code = judge(SOUND_ONE, {**BAD_ONE, "vulns": []})
    assert code == SOUND
    assert lines == ["known vulnerabilities in 2 pinned packages: 0 vulnerable, 2 without a known one"]


def test_a_package_that_was_skipped_is_not_counted_as_sound() -> None:
    lines, code = judge(SKIPPED, {**BAD_ONE, "vulns": []})
    assert code == SOUND
    assert lines[-1].endswith("0 vulnerable, 1 without a known one, 1 COULD NOT BE ASKED ABOUT")


def test_strict_fails_where_a_package_could_not_be_asked_about() -> None:
    assert judge(SKIPPED, {**BAD_ONE, "vulns": []}, strict=True)[1] == UNASKED


def test_a_vulnerability_fails_though_others_could_not_be_asked_about() -> None:
    assert judge(SKIPPED, BAD_ONE)[1] == VULNERABLE


def test_a_package_that_the_answer_leaves_out_was_not_asked_about() -> None:
    lines, _ = judge(SOUND_ONE)
    assert "1 COULD NOT BE ASKED ABOUT" in lines[-1]


def test_the_second_service_answers_for_what_the_first_does_not_know() -> None:
    first = read_answer(json.dumps({"dependencies": [SKIPPED]}))
    second = {CLICK: Answer(("GHSA-1 (no fix yet)",))}
    assert combine([CLICK], [first, second]) == {CLICK: second[CLICK]}


def test_an_answer_of_no_use_is_an_error_and_not_a_clean_bill() -> None:
    for text in ("", "Traceback", "{}", "[]"):
        with pytest.raises(ValueError, match=r"."):
            read_answer(text)


def test_pins_are_read_with_and_without_a_marker() -> None:
    text = "click==8.5.1 \\\n    --hash=sha256:aa\n"
    text += "aiohttp==3.14.5 ; sys_platform == 'win32' \\\n    --hash=sha256:bb\n"
    assert pins_of(text) == (CLICK, AIOHTTP)
