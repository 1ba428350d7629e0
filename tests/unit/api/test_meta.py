"""Metadata and conditions as they come over the wire."""

import msgspec

from muster.api.meta import Condition, ObjectMeta


def test_metadata_is_read_by_its_json_names() -> None:
    raw = b'{"resourceVersion":"7","deletionTimestamp":"t","ownerReferences":[{"apiVersion":"v1","kind":"K"}],"x":1}'
    meta = msgspec.json.decode(raw, type=ObjectMeta)
    assert (meta.resource_version, meta.deletion_timestamp, meta.name) == ("7", "t", "")
    assert [(owner.api_version, owner.kind) for owner in meta.owner_references or ()] == [("v1", "K")]


def test_a_condition_is_written_without_what_it_does_not_say() -> None:
    condition = Condition("Ready", "True", last_transition_time="t")
    assert msgspec.json.encode(condition) == b'{"type":"Ready","status":"True","lastTransitionTime":"t"}'
