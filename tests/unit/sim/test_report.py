"""The meter weighs by time and waits from complete to placed."""

from tests.unit.sim.scene import Scene

from muster.sim.report import Meter


def test_utilisation_is_weighted_by_time() -> None:
    scene = Scene()
    scene.node("n1", 4)
    meter = Meter(scene.look)
    meter.check(0.0)
    scene.pod("a", cpu="4", node="n1")
    meter.check(30.0)
    scene.pods.clear()
    meter.check(40.0)
    report = meter.report(seed=1, scenario="churn", steps=3, counts={})
    assert (report.utilisation, report.virtual_s, report.pods_bound) == (0.25, 40.0, 1)


def test_a_gang_waits_from_the_moment_it_is_complete() -> None:
    scene = Scene()
    meter = Meter(scene.look)
    scene.group("g", 2)
    scene.group("never", 1)
    scene.pod("x", group="never")
    scene.pod("a", group="g")
    meter.check(0.0)
    scene.pod("b", group="g")
    meter.check(10.0)
    for name in ("a", "b"):
        scene.pod(name, group="g", node="n1")
    meter.check(17.0)
    report = meter.report(seed=1, scenario="churn", steps=3, counts={})
    assert (report.gangs_placed, report.gangs_waiting, report.wait_s_max) == (1, 1, 7.0)
