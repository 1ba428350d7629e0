"""Tests of cli/demo.py: readable in 100 columns, plain where it is no terminal, and honest about failure."""

import io
from collections.abc import Iterator
from typing import Literal

import pytest
from rich.console import Console

from muster.cli.demo import WIDTH, facts_of, show_end, show_scene, show_title
from muster.cli.picture import Picture, take_picture
from muster.cli.story import ACTS, Act, Claim, Scene, Stage


@pytest.fixture
def picture() -> Picture:
    """Two nodes with a GPU, one of them taken by job-a, which needs two."""
    amounts = {"nvidia.com/gpu": "1", "pods": "9"}
    nodes = [{"metadata": {"name": name}, "status": {"allocatable": amounts}} for name in ("n1", "n2")]
    pods = [
        {
            "metadata": {"namespace": "default", "name": f"job-a-{index}"},
            "spec": {
                "nodeName": node,
                "schedulingGroup": {"podGroupName": "job-a"},
                "containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}],
            },
        }
        for index, node in enumerate(["n2", ""])
    ]
    gang = {"gang": {"minCount": 2}}
    group = {"metadata": {"namespace": "default", "name": "job-a"}, "spec": {"schedulingPolicy": gang}}
    return take_picture(nodes, pods, [group])


def scene_of(picture: Picture, *, holds: bool, message: str = "why " * 40) -> Scene:
    return Scene("a caption", picture, (message,), (Claim("one has it", holds),))


def shown(scene: Scene, *, terminal: bool = False) -> str:
    out = io.StringIO()
    color_system: Literal["standard", "auto"] = "standard" if terminal else "auto"
    console = Console(file=out, width=WIDTH, highlight=False, color_system=color_system)
    show_title(console, 1, ACTS[0])
    show_scene(console, scene)
    show_end(console, true=all(claim.holds for claim in scene.claims), elapsed_s=1.0)
    return out.getvalue()


def test_nodes_and_groups_are_drawn(picture: Picture) -> None:
    text = shown(scene_of(picture, holds=True))
    assert "nodes · a   1 of 2 GPUs allocated" in text
    assert "job-a ■□  cannot run: 1 of 2 workers placed (gang, minCount 2)" in text
    assert "✓ one has it" in text


def test_no_line_is_longer_than_100_columns(picture: Picture) -> None:
    assert max(len(line) for line in shown(scene_of(picture, holds=True)).splitlines()) <= WIDTH


def test_colour_is_for_terminals_only(picture: Picture) -> None:
    assert "\x1b[" not in shown(scene_of(picture, holds=True))
    assert "\x1b[" in shown(scene_of(picture, holds=True), terminal=True)


def test_a_claim_that_is_not_true_stands_out(picture: Picture) -> None:
    text = shown(scene_of(picture, holds=False))
    assert "✗ NOT SO: one has it" in text
    assert "NOT as the story says" in text


def test_the_facts_are_plain_data(picture: Picture) -> None:
    facts = facts_of(2, ACTS[1], scene_of(picture, holds=True))
    (group,) = facts["groups"]
    assert (facts["act"], facts["requested"]["nvidia.com/gpu"]) == (2, 1)
    assert (group["name"], group["policy"], group["needed"], group["canRun"]) == (
        "default/job-a",
        "gang",
        2,
        False,
    )
    assert group["nodes"] == {"job-a-0": "n2"}


def test_a_message_with_brackets_is_printed_as_it_is(picture: Picture) -> None:
    assert "needs [bold] things" in shown(scene_of(picture, holds=True, message="needs [bold] things"))


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)], ids=["as-told", "not-as-told"])
def test_the_exit_code_says_whether_it_came_true(
    monkeypatch: pytest.MonkeyPatch, picture: Picture, holds: bool, code: int
) -> None:
    import typer

    from muster.cli import demo, story

    def scenes(stage: Stage) -> Iterator[Scene]:
        yield scene_of(picture, holds=holds)

    monkeypatch.setattr(story, "ACTS", (Act("title", "setting", scenes),))
    with pytest.raises(typer.Exit) as ended:
        demo.demo(as_json=True)
    assert ended.value.exit_code == code
