"""What the server gives new objects, and keeps of old ones."""

import uuid

import numpy as np

from muster.apiserver.metadata import Chance, fill_new, keep_old, time_of, time_text


def chance(seed: int) -> Chance:
    return Chance(np.random.default_rng(seed))


def test_a_uid_is_a_random_uuid_that_the_seed_decides() -> None:
    first, again = chance(7), chance(7)
    uids = [first.uid() for _ in range(1_000)]
    assert uids == [again.uid() for _ in range(1_000)]
    assert len(set(uids)) == 1_000
    assert {uuid.UUID(uid).version for uid in uids} == {4}


def test_a_generated_name_is_cut_so_that_its_end_fits() -> None:
    name = chance(1).name("a" * 80)
    assert len(name) == 63
    assert name.startswith("a" * 58)


def test_times_are_whole_seconds_and_come_back() -> None:
    assert time_text(1_767_225_600.9) == "2026-01-01T00:00:00Z"
    assert time_of("2026-01-01T00:00:00Z") == 1_767_225_600


def test_a_new_object_has_nothing_that_only_the_server_may_say() -> None:
    metadata = {
        "name": "x",
        "uid": "mine",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "t",
    }
    fill_new(metadata, "n", 1_767_225_600.0, chance(1))
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["namespace"] == "n"
    assert "deletionTimestamp" not in metadata


def test_an_update_cannot_take_away_uid_time_generation_or_deletion() -> None:
    old = {
        "uid": "u",
        "creationTimestamp": "t",
        "generation": 3,
        "deletionTimestamp": "d",
        "resourceVersion": "9",
    }
    metadata = {"generation": 7, "labels": {"a": "b"}}
    keep_old(metadata, old)
    assert metadata == {**old, "labels": {"a": "b"}}
