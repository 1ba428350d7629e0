"""What a volume offers and a claim asks for."""

from typing import Any

import pytest

from muster.controllers.ports import Object
from muster.controllers.volume_readings import can_serve, claim_names_of, is_for


def volume(labels: dict[str, str] | None = None, **spec: Any) -> Object:
    offered = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}
    return {"metadata": {"name": "v", "labels": labels}, "spec": offered | spec}


def claim(**spec: Any) -> Object:
    asked = {
        "resources": {"requests": {"storage": "1Gi"}},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
    }
    return {"metadata": {"name": "c", "namespace": "default", "uid": "u"}, "spec": asked | spec}


def test_a_larger_volume_of_the_class_will_do() -> None:
    assert can_serve(volume(), claim())


@pytest.mark.parametrize(
    "asked",
    [
        {"storageClassName": "slow"},
        {"volumeMode": "Block"},
        {"accessModes": ["ReadWriteMany"]},
        {"resources": {"requests": {"storage": "3Gi"}}},
        {"selector": {"matchLabels": {"tier": "gold"}}},
    ],
)
def test_one_that_lacks_something_will_not(asked: dict[str, Any]) -> None:
    assert not can_serve(volume(), claim(**asked))


def test_labels_may_be_asked_for() -> None:
    assert can_serve(volume({"tier": "gold"}), claim(selector={"matchLabels": {"tier": "gold"}}))


def test_a_promise_by_name_holds_for_whoever_has_it_and_one_by_uid_for_nobody_else() -> None:
    reference = {"namespace": "default", "name": "c"}
    assert is_for(volume(claimRef=reference), claim())
    assert not is_for(volume(claimRef=reference | {"uid": "other"}), claim())


def test_a_pod_s_claims_are_those_it_names_and_those_made_for_it() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "d", "emptyDir": {}},
    ]
    assert claim_names_of({"metadata": {"name": "p"}, "spec": {"volumes": volumes}}) == ("c", "p-b")
