"""The embedded server answers as the stock one did; where it does not yet, one table says so by id."""

import pytest
import yaml
from tests.conformance.recording import differences
from tests.conformance.replay import RECORDED, Replayer, Section, load_sections
from tests.conformance.simulated_wire import SimulatedWire

PATHS, SECTIONS, ANSWERS = load_sections()
FAILING = yaml.safe_load((RECORDED / "failing.yaml").read_text(encoding="utf-8"))
SERVER_ALONE = ("storage", "volumes", "devices")  # recorded without a controller manager
WHOLE = ("groups", "workloads", "composites", "priority", "pods", "jobs")  # promised with the first release


def faults_of(section: Section) -> dict[str, list[str]]:
    """Replay a section on a fresh cluster; id → where the answer differs."""
    wire = SimulatedWire(controllers=section.section not in SERVER_ALONE)
    if section.section == "expired":
        wire.cluster.world.cluster.server.store.forget()  # as stock does some ten minutes after its start
    replayer = Replayer(wire, PATHS)
    faults = {}
    for step in section.requests:
        try:
            found = list(differences(ANSWERS[step["id"]], replayer.ask(step)))
        except (AssertionError, KeyError) as error:  # what an earlier request should have left is not there
            found = [repr(error)]
        if found:
            faults[step["id"]] = found
    return faults


@pytest.mark.parametrize("section", [pytest.param(section, id=section.section) for section in SECTIONS])
def test_exactly_the_requests_named_in_the_table_are_answered_otherwise(section: Section) -> None:
    faults = faults_of(section)
    known = set(FAILING.get(section.section, []))
    unexpected = {key: found[:4] for key, found in faults.items() if key not in known}
    assert not unexpected, f"{len(unexpected)} answers differ"
    assert set(faults) == known, "these pass now: take them out of the table"


def test_the_sections_of_the_first_release_pass_whole() -> None:
    assert not set(FAILING) & set(WHOLE)
    assert {section.section for section in SECTIONS} >= set(FAILING) | set(WHOLE)
