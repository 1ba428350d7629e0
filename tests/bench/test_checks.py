"""A wrong outcome of an end-to-end run is found, whatever kind it is; a right one is not."""

from collections.abc import Callable

import pytest
from bench.checks import find_faults
from bench.loads import Load
from bench.measures import gang_waits_s, speed, writes_by_resource
from bench.observer import Seen
from bench.wire import parse_metrics, total

LOAD = Load(nodes=4, gangs=2, size=2, racks=2)


def good_run() -> Seen:
    """Two gangs of two, each in a rack of its own."""
    seen = Seen()
    for number in range(4):
        name = f"pod-{number:05d}"
        seen.created_s[name] = 10.0 + number
        seen.bound_s[name] = 20.0 + number
        seen.group_of[name] = LOAD.group_of(number)
        seen.node_of[name] = f"node-{(number // 2) + 2 * (number % 2):05d}"
    seen.group_created_s.update({"gang-00000": 9.0, "gang-00001": 15.0})
    return seen


def unbind(seen: Seen) -> None:
    del seen.bound_s["pod-00003"], seen.node_of["pod-00003"]


def overcommit(seen: Seen) -> None:
    for number in range(41):
        seen.node_of[f"other-{number}"] = "node-00000"
        seen.group_of[f"other-{number}"] = "others"


def split(seen: Seen) -> None:
    seen.node_of["pod-00001"] = "node-00001"


def never_create(seen: Seen) -> None:
    del seen.created_s["pod-00003"]
    unbind(seen)


def test_a_good_run_has_no_fault() -> None:
    assert find_faults(LOAD, good_run()) == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        pytest.param(unbind, "1 pods not bound", id="unbound-pod"),
        pytest.param(unbind, "gang gang-00001: 1 of 2 bound", id="half-gang"),
        pytest.param(overcommit, "node node-00000: 42 pods, 40 fit", id="overcommitted-node"),
        pytest.param(split, "gang gang-00000 is in", id="rack-violated"),
        pytest.param(lambda seen: seen.moved.append("pod-00000"), "moved", id="pod-moved"),
        pytest.param(never_create, "3 of 4 created", id="pod-not-created"),
    ],
)
def test_a_wrong_result_is_found(spoil: Callable[[Seen], None], words: str) -> None:
    seen = good_run()
    spoil(seen)
    assert any(words in fault for fault in find_faults(LOAD, seen))


def test_who_heeds_no_racks_is_not_held_to_them() -> None:
    seen = good_run()
    split(seen)
    assert find_faults(LOAD, seen, keeps_racks=False) == []


def test_a_gang_waits_from_when_it_is_complete_to_its_last_needed_bind() -> None:
    assert gang_waits_s(LOAD, good_run()) == [21.0 - 11.0, 23.0 - 15.0]


def test_the_clock_of_a_backlog_starts_with_the_first_group() -> None:
    assert speed(LOAD, good_run(), is_backlog=False)["last_bind_s"] == 13.0
    assert speed(LOAD, good_run(), is_backlog=True)["last_bind_s"] == 14.0


def test_writes_are_counted_by_resource_without_reads_and_leases() -> None:
    line = 'apiserver_request_total{{verb="{}",resource="{}",subresource="{}"}} {}\n'
    before = parse_metrics(line.format("POST", "pods", "", 5) + line.format("GET", "pods", "", 7))
    after = parse_metrics(
        "# HELP apiserver_request_total x\n"
        + line.format("POST", "pods", "", 9)
        + line.format("POST", "pods", "binding", 3)
        + line.format("PUT", "leases", "", 4)
        + line.format("GET", "pods", "", 70)
    )
    assert writes_by_resource(before, after) == {"pods": 4, "pods/binding": 3}


def test_metrics_are_summed_over_the_labels_not_asked_for() -> None:
    samples = parse_metrics('a{x="1",y="2"} 3\na{x="1",y="4"} 5\na{x="2"} 7\nb 1e3\n')
    assert (total(samples, "a", x="1"), total(samples, "a"), total(samples, "b")) == (8.0, 15.0, 1000.0)
