"""How `muster check` prints what it found."""

import json

from muster.cli.check import WIDTH, as_json_text, as_words
from muster.runtime.inspection import Finding, Level

GOOD = Finding("api", Level.OK, "scheduling.k8s.io/v1beta1 is served")
BAD = Finding("gate", Level.MISSING, "spec.schedulingGroup is dropped " * 5, "turn the gate on")
DARK = Finding("rights", Level.UNKNOWN, "this server has no access reviews")


def test_a_fault_stands_with_its_cure_below() -> None:
    lines = as_words([GOOD, BAD]).splitlines()
    assert lines[0] == "ok      scheduling.k8s.io/v1beta1 is served"
    assert lines[1].startswith("MISSING spec.schedulingGroup is dropped")
    assert "        → turn the gate on" in lines
    assert lines[-1] == "1 missing"


def test_no_line_is_wider_than_a_hundred_columns() -> None:
    assert max(len(line) for line in as_words([GOOD, BAD, DARK]).splitlines()) <= WIDTH


def test_what_could_not_be_seen_is_said_at_the_end() -> None:
    assert as_words([GOOD, DARK]).splitlines()[-1] == "nothing is missing, 1 could not be seen"


def test_json_says_whether_all_is_well() -> None:
    assert json.loads(as_json_text([GOOD, DARK]))["ok"] is True
    told = json.loads(as_json_text([BAD]))
    assert told["ok"] is False
    assert told["findings"][0]["cure"] == "turn the gate on"
