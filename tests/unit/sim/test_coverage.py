"""Transitions are counted when they happen, once."""

from collections import Counter

from tests.unit.sim.scene import Scene

from muster.sim.coverage import Coverage, missing


def watch(scene: Scene) -> tuple[Coverage, Counter[str]]:
    counts: Counter[str] = Counter()
    return Coverage(scene.look, counts), counts


def test_a_gang_that_is_refused_and_then_placed() -> None:
    scene = Scene()
    coverage, counts = watch(scene)
    scene.group("g", 2)
    for name in ("a", "b"):
        scene.pod(name, group="g")
    coverage.check(0.0)
    scene.group("g", 2, status="False")
    coverage.check(1.0)
    for name in ("a", "b"):
        scene.pod(name, group="g", node="n1")
    coverage.check(2.0)
    coverage.check(3.0)
    assert +counts == {"gang refused": 1, "gang placed after refusal": 1}


def test_a_gang_whose_minimum_is_lowered_below_what_is_there() -> None:
    scene = Scene()
    coverage, counts = watch(scene)
    scene.group("g", 3)
    scene.pod("a", group="g")
    coverage.check(0.0)
    scene.group("g", 1)
    coverage.check(1.0)
    scene.pod("a", group="g", node="n1")
    coverage.check(2.0)
    assert +counts == {
        "gang placed at once": 1,
        "gang gated, then placed": 1,
        "gang placed after its minimum was lowered": 1,
    }


def test_pods_that_come_end_and_go() -> None:
    scene = Scene()
    coverage, counts = watch(scene)
    scene.pod("a")
    coverage.check(0.0)
    scene.pod("a", node="n1")
    coverage.check(5.0)
    scene.pod("a", node="n1", phase="Failed")
    coverage.check(6.0)
    scene.pods.clear()
    coverage.check(7.0)
    assert +counts == {
        "lone pod placed": 1,
        "lone pod waited, then placed": 1,
        "pod failed": 1,
    }


def test_missing_names_what_never_happened() -> None:
    assert missing(Counter(a=1), ["b", "a", "c"]) == ["b", "c"]
