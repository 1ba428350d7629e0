"""Every package that is installed for development, an image or a tool is pinned, with hashes."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUN = PROJECT["project"]["dependencies"]
BUILD = PROJECT["dependency-groups"]["build"]
WANTED = {
    "constraints.txt": [*RUN, *PROJECT["project"]["optional-dependencies"]["dev"], *BUILD],
    "constraints-image.txt": [*RUN, *BUILD],
    "constraints-tools.txt": PROJECT["dependency-groups"]["tools"],
    "constraints-fuzz.txt": PROJECT["dependency-groups"]["fuzz"],
}


def pins_in(name: str) -> dict[str, tuple[Version, list[str]]]:
    """Package → version and hashes; every line of the file is one or the other."""
    pins: dict[str, tuple[Version, list[str]]] = {}
    hashes: list[str] = []
    for line in (ROOT / "scripts" / name).read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})(?: \\)?", line):
            hashes.append(found[1])
            continue
        found = re.fullmatch(r"([a-z0-9-]+)==([^ ]+)(?: ; .*?)? \\", line)
        assert found, f"{name}: {line!r}"
        hashes = []
        pins[found[1]] = (Version(found[2]), hashes)
    return pins


@pytest.mark.parametrize("name", WANTED)
def test_every_pin_has_a_hash(name: str) -> None:
    pins = pins_in(name)
    assert pins
    assert [package for package, (_, hashes) in pins.items() if not hashes] == []


@pytest.mark.parametrize("name", WANTED)
def test_everything_that_is_asked_for_is_pinned_as_asked_run_scripts_lock(name: str) -> None:
    pins = pins_in(name)
    asked = [Requirement(text) for text in WANTED[name]]
    unpinned = [each.name for each in asked if canonicalize_name(each.name) not in pins]
    assert unpinned == []
    assert [each.name for each in asked if pins[canonicalize_name(each.name)][0] not in each.specifier] == []


def test_one_package_has_one_version_in_the_image_and_in_development() -> None:
    development = pins_in("constraints.txt")
    assert {
        name: pin for name, pin in pins_in("constraints-image.txt").items() if development[name] != pin
    } == {}


def test_the_builder_that_pyproject_names_is_pinned() -> None:
    builders = {Requirement(text).name for text in PROJECT["build-system"]["requires"]}
    assert builders <= {Requirement(text).name for text in BUILD}


def needed_here() -> Iterator[str]:
    """Everything that Muster and its tools need on this machine, and what that needs in turn."""
    seen: set[tuple[str, str]] = set()
    left = [("kube-muster", "dev"), *((Requirement(text).name, "") for text in BUILD)]
    while left:
        name, extra = left.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        yield name
        for text in requires(name) or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": extra}):
                left += [(canonicalize_name(asked.name), each) for each in asked.extras or {""}]


def test_what_is_installed_is_what_is_pinned() -> None:
    pins = pins_in("constraints.txt")
    wrong: list[str] = []
    for name in {*needed_here()} - {"kube-muster"}:
        try:
            if name not in pins or Version(version(name)) != pins[name][0]:
                wrong.append(name)
        except PackageNotFoundError:
            wrong.append(name)
    assert wrong == []


def test_nothing_is_installed_without_its_hash() -> None:
    setup = (ROOT / "scripts" / "setup").read_text(encoding="utf-8")
    image = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"(?:pip_install|pip install) (-[^@]*?)$", setup + image, flags=re.MULTILINE)
    assert len(installs) == 4
    assert [line for line in installs if "--require-hashes" not in line and "--no-index" not in line] == []
