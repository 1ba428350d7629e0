"""The typed views read what the API writes."""

from muster.api.codec import decode_object
from muster.api.scheduling import PodGroup, PriorityClass, Workload


def test_a_pod_group_is_read() -> None:
    raw = {
        "metadata": {"name": "g", "namespace": "default", "uid": "u"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": {"all": {}},
            "priority": 7,
            "workloadRef": {"workloadName": "w", "templateName": "t"},
        },
        "status": {"conditions": [{"type": "T", "status": "True"}]},
    }
    group = decode_object(raw, PodGroup)
    assert group.spec.scheduling_policy.gang is not None
    assert group.spec.scheduling_policy.gang.min_count == 3
    assert group.spec.disruption_mode is not None
    assert group.spec.disruption_mode.all == {}
    assert group.status.conditions is not None
    assert group.status.conditions[0].type == "T"


def test_a_workload_and_a_priority_class_are_read() -> None:
    workload = decode_object(
        {
            "metadata": {"name": "w"},
            "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}]},
        },
        Workload,
    )
    assert workload.spec.pod_group_templates is not None
    assert workload.spec.pod_group_templates[0].scheduling_policy.basic == {}
    priority = decode_object(
        {"metadata": {"name": "p"}, "value": 10, "preemptionPolicy": "Never"}, PriorityClass
    )
    assert (priority.value, priority.preemption_policy) == (10, "Never")
