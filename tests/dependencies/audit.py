"""`scripts/audit`: are there known vulnerabilities in what is pinned?

pip-audit asks two advisory services about every pin in `scripts/constraints*.txt`: PyPI first, OSV where PyPI
has no answer for some.  It passes over packages that a service does not know as if they were sound, and
behind a mirror there are often no advisories at all; so answers are counted here, package by package, and
what nobody could say is said.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SERVICES = ("pypi", "osv")
SERVICE_TIMEOUT_S, RUN_TIMEOUT_S = 15, 300
SOUND, VULNERABLE, UNASKED = 0, 1, 3


class Package(NamedTuple):
    name: str
    version: str


class Answer(NamedTuple):
    """What is known of one package: its advisories, or why nobody could say (`unasked`)."""

    advisories: tuple[str, ...] = ()
    unasked: str = ""


def read_answer(text: str) -> dict[Package, Answer]:
    """What pip-audit prints with `--format json`.  Raises ValueError where it is no such answer."""
    try:
        found = json.loads(text)["dependencies"]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no list of dependencies: {error}") from error
    answers: dict[Package, Answer] = {}
    for each in found:
        if "skip_reason" in each:
            # the version stands in the words only
            answers[Package(each["name"], "")] = Answer(unasked=each["skip_reason"])
            continue
        advisories = tuple(_describe(advisory) for advisory in each["vulns"])
        answers[Package(each["name"], each["version"])] = Answer(advisories)
    return answers


def _describe(advisory: Mapping[str, object]) -> str:
    fixes = advisory.get("fix_versions")
    fixed = f"fixed in {', '.join(map(str, fixes))}" if isinstance(fixes, list) and fixes else "no fix yet"
    return f"{advisory['id']} ({fixed})"


def pins_of(text: str) -> tuple[Package, ...]:
    """The packages that a file of pins names, for whatever platform."""
    lines = (line.split(";")[0].strip(" \\") for line in text.splitlines() if "==" in line)
    return tuple(Package(*line.split("==")) for line in lines)


def combine(pins: Iterable[Package], answers: Iterable[Mapping[Package, Answer]]) -> dict[Package, Answer]:
    """One answer a pin: the first real one; where there is none, why."""
    combined: dict[Package, Answer] = {}
    for pin in pins:
        given = [found for each in answers if (found := each.get(pin) or each.get(Package(pin.name, "")))]
        real = [each for each in given if not each.unasked]
        why = "; ".join(each.unasked for each in given) or "no service gave an answer"
        combined[pin] = real[0] if real else Answer(unasked=why)
    return combined


def report(answers: Mapping[Package, Answer], *, strict: bool) -> tuple[list[str], int]:
    """What to print, and the exit code: 1 for a known vulnerability, 3 for one unasked with `strict`."""
    lines: list[str] = []
    vulnerable = {package: answer for package, answer in answers.items() if answer.advisories}
    unasked = {package: answer for package, answer in answers.items() if answer.unasked}
    for package, answer in vulnerable.items():
        lines.append(f"{package.name} {package.version}: {', '.join(answer.advisories)}")
    if vulnerable:
        lines.append("raise them: scripts/lock --upgrade-package NAME")
    parts = [
        f"{len(vulnerable)} vulnerable",
        f"{len(answers) - len(vulnerable) - len(unasked)} without a known one",
    ]
    if unasked:
        package, answer = next(iter(unasked.items()))
        lines.append(f"nobody could say anything of {package.name}, for one: {answer.unasked}")
        parts.append(f"{len(unasked)} COULD NOT BE ASKED ABOUT")
    lines.append(f"known vulnerabilities in {len(answers)} pinned packages: {', '.join(parts)}")
    if vulnerable:
        return lines, VULNERABLE
    return lines, UNASKED if unasked and strict else SOUND


def ask(service: str, pins: Path) -> dict[Package, Answer]:
    """Have pip-audit ask one service about one file.  Raises ValueError, with why, if there is no answer."""
    options = [
        "--disable-pip",
        "--no-deps",
        "--require-hashes",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    command = [sys.executable, "-m", "pip_audit", *options, "--vulnerability-service", service]
    command += ["--timeout", str(SERVICE_TIMEOUT_S), "--requirement", str(pins)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"no answer within {RUN_TIMEOUT_S} s") from error
    try:
        return read_answer(done.stdout)
    except ValueError as error:
        last = (done.stderr.strip().splitlines() or [str(error)])[-1]
        raise ValueError(last[:300]) from error


def main() -> int:
    """Ask about every file of pins and print what came of it."""
    words = sys.argv[1:]
    if words not in ([], ["--strict"]):
        print("scripts/audit: no argument, or --strict", file=sys.stderr)
        return 2
    answers: dict[Package, Answer] = {}
    for path in sorted((ROOT / "scripts").glob("constraints*.txt")):
        pins = [pin for pin in pins_of(path.read_text(encoding="utf-8")) if pin not in answers]
        given: list[dict[Package, Answer]] = []
        for service in SERVICES:
            try:
                given.append(ask(service, path))
            except ValueError as error:
                given.append({Package(pin.name, ""): Answer(unasked=f"{service}: {error}") for pin in pins})
            if not any(answer.unasked for answer in combine(pins, given).values()):
                break
        answers.update(combine(pins, given))
    lines, code = report(answers, strict=bool(words))
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
