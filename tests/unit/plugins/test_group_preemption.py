"""DefaultPreemption: who is eligible, in which words, and that it asks the search."""

from msgspec.structs import replace

from muster.framework.status import Verdict
from muster.placement.eviction import Trial, Try
from muster.plugins.group_preemption import DefaultPreemption
from muster.testing.conformance import check_plugin
from muster.testing.preemptors import make_preemptor


def test_it_keeps_the_contract() -> None:
    check_plugin(DefaultPreemption())


def test_it_says_whom_it_would_drive_out() -> None:
    rescue = DefaultPreemption().post_filter(make_preemptor())
    assert rescue.status.ok
    assert rescue.status.message == "found a placement for podgroup, preempting 1 victims"
    assert rescue.eviction is not None
    assert [unit.name for unit in rescue.eviction.victims] == ["default/low"]


def test_never_is_never() -> None:
    rescue = DefaultPreemption().post_filter(make_preemptor(policy="Never"))
    assert rescue.status.verdict is Verdict.UNSCHEDULABLE
    assert rescue.status.message == "not eligible due to preemptionPolicy=Never."


def test_while_the_first_victims_leave_no_others_are_asked() -> None:
    plugin = DefaultPreemption()
    assert plugin.post_filter(make_preemptor(is_draining=True)).status.message == (
        "ongoing preemption on nominated nodes"
    )
    assert plugin.post_filter(make_preemptor("pod", is_draining=True)).status.message == (
        "not eligible due to a terminating pod on the nominated node."
    )


def test_where_nobody_is_weaker_it_is_said_to_those_who_might_expect_it() -> None:
    plugin = DefaultPreemption()
    for kind, priority, text in (
        ("podgroup", 100, "No preemption victims found for incoming preemptor"),
        ("pod", 100, "0/1 nodes are available: 1 No preemption victims found for incoming pod."),
        ("podgroup", 0, ""),
    ):
        rescue = plugin.post_filter(make_preemptor(kind, with_victim=False, priority=priority))
        assert rescue.status.verdict is Verdict.UNRESOLVABLE
        assert rescue.status.message == text


def test_where_even_that_is_not_enough_the_trials_words_are_given() -> None:
    hopeless = Try(on=lambda *_, explain=True: Trial(False, "2 scheduled, 0 remaining"), members=1)
    rescue = DefaultPreemption().post_filter(replace(make_preemptor(), trial=hopeless))
    assert rescue.status.verdict is Verdict.UNSCHEDULABLE
    assert rescue.status.message == "2 scheduled, 0 remaining"


def test_who_is_leaving_anyway_is_waited_for_and_that_is_said() -> None:
    asked = make_preemptor()
    ((pod, row),) = asked.units[0].pods
    leaving = replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:30Z"))
    rescue = DefaultPreemption().post_filter(
        replace(asked, units=(replace(asked.units[0], pods=((leaving, row),)),))
    )
    assert rescue.status.message == "found a placement for podgroup, waiting for pods that are terminating"
