"""Warnings about pods."""

from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.pod_warnings import pod_warnings

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def warnings(name: str = "p", **spec: Any) -> list[str]:
    return list(pod_warnings({"metadata": {"name": name}, "spec": spec}))


def container(**parts: Any) -> Object:
    return {"containers": [{"name": "c", **parts}]}


@pytest.mark.parametrize(
    ("spec", "warning"),
    [
        pytest.param(
            container(env=[{"name": "a"}, {"name": "a"}]),
            'spec.containers[0].env[1]: hides previous definition of "a", which may be dropped when using '
            "apply",
            id="a variable twice",
        ),
        pytest.param(
            container(ports=[{"containerPort": 80}, {"containerPort": 80, "name": "x"}]),
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            id="a port twice",
        ),
        pytest.param(
            container(resources={"requests": {"memory": "100m"}}),
            'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must '
            "be an "
            "integer",
            id="a tenth of a byte",
        ),
        pytest.param(
            {"nodeSelector": {OLD_ZONE: "a"}},
            f'spec.nodeSelector[{OLD_ZONE}]: deprecated since v1.17; use "topology.kubernetes.io/zone" '
            "instead",
            id="an old label",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no "
            "pod",
            id="a spread of nothing",
        ),
    ],
)
def test_what_is_allowed_and_not_meant_is_said(spec: Object, warning: str) -> None:
    assert warnings(**spec) == [warning]


def test_old_labels_are_found_in_affinity() -> None:
    expressions = [{"key": OLD_ZONE, "operator": "Exists"}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": expressions}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    [found] = warnings(affinity=affinity)
    assert f"{OLD_ZONE} is deprecated since v1.17" in found


def test_a_name_that_is_no_hostname_is_said() -> None:
    assert warnings("a" * 64)[0].endswith("[must be no more than 63 characters]")
    assert warnings() == []
