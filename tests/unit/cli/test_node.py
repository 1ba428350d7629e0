"""Tests of cli/node.py: what is written on a node; that it works is tests/conformance/test_nodes.py."""

import pytest

from muster.base.errors import ConfigError
from muster.cli.node import check_embedded, kubelet_patch, stop


def test_stopping_writes_the_annotation_and_starting_takes_it_away() -> None:
    assert kubelet_patch(stopped=True) == {"metadata": {"annotations": {"muster.dev/kubelet": "stopped"}}}
    assert kubelet_patch(stopped=False) == {"metadata": {"annotations": {"muster.dev/kubelet": None}}}


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.kubeconfig"):
        stop("n1", kubeconfig="nowhere.kubeconfig")


@pytest.mark.parametrize("version", [b'{"platform": "linux/amd64"}', b"{}", b"[]", b"<html>"])
def test_the_kubelets_of_another_cluster_are_left_alone(version: bytes) -> None:
    with pytest.raises(ConfigError, match="https://there is no muster up") as caught:
        check_embedded(version, "https://there")
    assert "kubectl drain" in caught.value.hint
