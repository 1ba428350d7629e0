"""The docs cannot lie: links and commands exist, generated pages are fresh, rights are those used."""

import importlib.util
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest
import typer
import yaml
from tests.unit.runtime.test_process import FakeCluster

from muster.api.devices import Allocation
from muster.api.meta import Condition
from muster.assembly.claim_steps import steps_of
from muster.assembly.config import Config, PluginChoice, QueueChoice
from muster.assembly.requests import Call, WireEffect, request_of
from muster.cli.main import app
from muster.framework.groups import ObjectKey
from muster.framework.ports import (
    BindPod,
    DropClaim,
    EvictPod,
    MakeClaim,
    ObjectReference,
    PatchGroupStatus,
    PatchPodStatus,
    Prepare,
    PromiseVolume,
    RecordEvent,
    SelectNode,
    WriteClaim,
)
from muster.runtime.inspection import RIGHTS
from muster.runtime.kinds import KINDS
from muster.scheduling import metrics as core_metrics

ROOT = Path(__file__).parent.parent


def tracked(pattern: str) -> list[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", pattern]
    names = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    return [ROOT / name for name in sorted(names) if (ROOT / name).is_file()]


PAGES = tracked("*.md")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ── links and names of files ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


def named_files(text: str) -> list[str]:
    """Every `path/like/this.py` in backquotes that stands for one file of ours."""
    quoted = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|yaml|toml))`", text)
    return [path for path in quoted if not re.search(r"[<*…]|NNNN|my_rule", path)]


@pytest.mark.parametrize(
    "page", [ROOT / "AGENTS.md", ROOT / "docs" / "journey.md", ROOT / "README.md"], ids=name_of
)
def test_files_named_in_the_guides_exist(page: Path) -> None:
    paths = named_files(page.read_text(encoding="utf-8"))
    assert [
        path for path in paths if not ((ROOT / path).exists() or (ROOT / "src" / "muster" / path).exists())
    ] == []


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def commands_of(page: Path) -> list[str]:
    """The lines of a page's sh blocks, without prompts, comments and continuations."""
    blocks = re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    commands = [line.removeprefix("$ ").split(" #")[0].strip() for line in lines]
    return [line for line in commands if re.match(r"(scripts/|muster |\.ci/)", line)]


COMMANDS = sorted({(name_of(page), command) for page in PAGES for command in commands_of(page)})


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_in_the_docs_exist_with_their_options(page: str, command: str) -> None:
    words = [word for word in shlex.split(command) if word != "&"]
    if words[0] != "muster":
        assert (ROOT / words[0]).stat().st_mode & 0o111, f"{page}: {words[0]} cannot be run"
    else:
        assert_command_exists(page, words)


def assert_command_exists(page: str, words: list[str]) -> None:
    """Check a `muster …` command line against the commands and options there are."""
    parser: Any = typer.main.get_command(app)
    rest = words[1:]
    while hasattr(parser, "commands"):
        assert rest[0] in parser.commands, f"{page}: muster has no verb {rest[0]}"
        parser = parser.commands[rest.pop(0)]
    known = {name for option in parser.params for name in (*option.opts, *option.secondary_opts)}
    assert [word for word in rest if word.startswith("-") and word.split("=")[0] not in known] == []


def test_the_readme_shows_the_two_commands() -> None:
    assert {"scripts/demo", "scripts/test"} <= set(commands_of(ROOT / "README.md"))


def without_seconds(text: str) -> list[str]:
    return re.sub(r"\d+\.\d s\b", "N s", text).split("\n")


def test_the_transcript_in_the_readme_is_what_the_demo_prints() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (transcript,) = re.findall(r"```text\n\$ scripts/demo\n(.*?)```", text, flags=re.DOTALL)
    command = [sys.executable, "-c", "from muster.cli.main import main; main()", "demo"]
    played = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert played.returncode == 0, played.stdout
    assert without_seconds(played.stdout) == without_seconds(transcript)


def test_help_of_the_test_command_is_pytest_own() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--version"], capture_output=True, text=True, check=True
    )
    assert "pytest" in run.stdout + run.stderr
    assert "pytest" in (ROOT / "scripts" / "test").read_text(encoding="utf-8")


# ── generated pages ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["docs/command-line.md"])
def test_generated_pages_are_fresh(path: str) -> None:
    fresh = script("make_docs").PAGES[path]()
    assert (ROOT / path).read_text(encoding="utf-8") == fresh, "run scripts/docs"


# ── deploy/ ──────────────────────────────────────────────────────────────────────────────────────


def rights_given() -> set[tuple[str, str, str]]:
    """(API group, resource, verb) of every rule in deploy/muster.yaml."""
    documents = yaml.safe_load_all((ROOT / "deploy" / "muster.yaml").read_text(encoding="utf-8"))
    return {
        (group, resource, verb)
        for document in documents
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


KEY = ObjectKey("default", "a")
EFFECTS: list[WireEffect] = [
    BindPod(KEY, "uid", "n1", "muster"),
    PromiseVolume(KEY, "v", "1", KEY, "uid"),
    SelectNode(KEY, KEY, "uid", "n1"),
    WriteClaim(KEY, KEY, "uid", "1", Allocation(), ()),
    MakeClaim(KEY, KEY, "uid", (), (), Allocation()),
    DropClaim(KEY, KEY, "uid", "uid"),
    EvictPod(KEY, "uid", Condition("DisruptionTarget")),
    PatchPodStatus(KEY, "uid", Condition("PodScheduled")),
    PatchGroupStatus(KEY, "uid", (Condition("PodGroupInitiallyScheduled"),)),
    RecordEvent(ObjectReference("v1", "Pod", KEY, "uid"), "Normal", "Scheduled", "Binding", "text", "muster"),
]
VERBS = {"POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update", "GET": "get"}


# what the server asks about as well: a right for what is written, beside that for the path it is written to
ASKED_TOO = {
    ("resource.k8s.io", "resourceclaims/status", "patch"): (
        "resource.k8s.io",
        "resourceclaims/binding",
        "patch",
    )
}


def right_of(method: str, path: str) -> tuple[str, str, str]:
    """The right that a request needs."""
    match = re.fullmatch(
        r"/(?:api/v1|apis/([\w.]+)/\w+)(?:/namespaces/[\w-]+)?/(\w+)(?:/[\w-]+)?(?:/(\w+))?", path
    )
    assert match is not None, path
    group, resource, subresource = match.groups()
    return group or "", f"{resource}/{subresource}" if subresource else resource, VERBS[method]


def steps_played(effect: Prepare) -> list[Call]:
    steps = steps_of(effect)
    calls = [next(steps)]
    with suppress(StopIteration):
        while True:
            calls.append(steps.send({"metadata": {"name": "made"}}))
    return calls


def rights_used() -> set[tuple[str, str, str]]:
    """What `muster run` asks for: its effects, its watches, a second look at a pod, and its Lease."""
    calls: list[Call] = []
    for effect in EFFECTS:
        if isinstance(effect, Prepare):
            calls += steps_played(effect)
        else:
            calls.append(request_of(effect, now_s=0.0))
    watched = [right_of("GET", kind.path)[:2] for kind in KINDS]
    rights = {right_of(call.method, call.path) for call in calls}
    return (
        rights
        | {also for right, also in ASKED_TOO.items() if right in rights}
        | {(*resource, verb) for resource in watched for verb in ("list", "watch")}
        | {("", "pods", "get")}
        | {("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")}
    )


def test_every_effect_that_needs_a_right_is_counted() -> None:
    assert {type(effect) for effect in EFFECTS} == set(get_args(WireEffect))


def test_the_deployment_has_exactly_the_rights_it_uses() -> None:
    assert rights_given() == rights_used()


def test_muster_check_asks_for_exactly_those_rights() -> None:
    asked = {(group, resource, verb) for group, resource, verbs, _ in RIGHTS for verb in verbs}
    assert asked == rights_used()


def test_the_guide_lists_exactly_those_rights() -> None:
    text = (ROOT / "docs" / "running-on-a-cluster.md").read_text(encoding="utf-8")
    told = set()
    for row in re.findall(r"^\| ([a-z][^|]*) \| ([a-z, ]+) \| [^|]* \|$", text, flags=re.MULTILINE):
        whats = re.sub(r"\(.*?\)| in `.*`", "", row[0]).split(",")
        told |= {(what.strip(), verb.strip()) for what in whats for verb in row[1].split(",")}
    assert told == {(resource, verb) for _, resource, verb in rights_used()} | {("what", "verbs")}


def test_the_page_of_metrics_has_every_metric_and_no_other() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([a-z_]+)` \|.*\|.*\|$", text, flags=re.MULTILINE)
    process = FakeCluster().process()
    process._requests.count("GET", 200)
    shown = {name for (name, _), _ in (*process._counters(), *process._gauges())}
    counted = {value for name, value in vars(core_metrics).items() if name.isupper() and type(value) is str}
    assert sorted(told) == sorted(shown | counted)


def test_the_deployment_runs_a_command_that_exists() -> None:
    documents = list(yaml.safe_load_all((ROOT / "deploy" / "muster.yaml").read_text(encoding="utf-8")))
    deployment = next(document for document in documents if document["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert_command_exists("deploy/muster.yaml", ["muster", *container["args"]])


def test_the_deployment_holds_no_more_than_it_needs() -> None:
    """No root, nothing to write to, no more than the runtime's own system calls, no other capability."""
    documents = list(yaml.safe_load_all((ROOT / "deploy" / "muster.yaml").read_text(encoding="utf-8")))
    pod = next(each for each in documents if each["kind"] == "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & pod.keys()
    assert "USER 65532" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


# ── settings ─────────────────────────────────────────────────────────────────────────────────────

SETTINGS = [
    field
    for type_ in (Config, PluginChoice, QueueChoice)
    for field in msgspec.structs.fields(type_)
    if field.name != "queue"
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda field: field.encode_name)
def test_every_setting_has_a_row_with_its_default(setting: msgspec.structs.FieldInfo) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (row,) = re.findall(
        rf"^\| `(?:queue\.)?{setting.encode_name}`[^|]*\| ([^|]*) \|.*\|$", text, flags=re.MULTILINE
    )
    if isinstance(setting.default, int | float):
        assert row == f"{setting.default:g}"
