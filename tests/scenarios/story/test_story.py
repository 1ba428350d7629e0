"""The story of `examples/story/`, played from its files on virtual time, judged by what the API shows.

`muster demo` tells the same; here nothing of it is used, so that a story told wrongly is noticed.
"""

from pathlib import Path
from typing import Any

import yaml
from tests.conformance.server import GROUPS, MERGE_PATCH, NODES, PODS, Api
from tests.conformance.simulation import SimulatedCluster

from muster.sim.view import condition_of, node_of

FILES = Path(__file__).parents[3] / "examples" / "story"
COLLECTIONS = {"Node": NODES, "PodGroup": GROUPS, "Pod": PODS}


class Story:
    """A cluster of the story's nodes, on which its files are applied."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster(kubelets=True)
        self.api = Api(self.cluster)
        self.apply("nodes.yaml")

    def apply(self, file: str, *, pause_s: float = 0.0) -> None:
        """Create the objects of a file in order, each a while after the one before."""
        for manifest in yaml.safe_load_all((FILES / file).read_text(encoding="utf-8")):
            self.api.must("POST", COLLECTIONS[manifest["kind"]], manifest)
            self.cluster.sleep(pause_s)

    def bound(self, job: str) -> int:
        """Workers of this job that are bound or have been."""
        return sum(bool(node_of(pod)) for pod in self._workers(job))

    def succeeded(self, job: str) -> int:
        """Workers of this job that are done."""
        return sum(pod["status"]["phase"] == "Succeeded" for pod in self._workers(job))

    def message(self, job: str) -> str:
        """Why this job's group is not scheduled."""
        group = self.api.must("GET", f"{GROUPS}/{job}")
        condition = condition_of(group, "PodGroupInitiallyScheduled")
        assert condition is not None
        assert condition["status"] == "False"
        return str(condition["message"])

    def _workers(self, job: str) -> list[dict[str, Any]]:
        pods = [pod for pod in self.api.items(PODS) if pod["metadata"]["name"].startswith(f"{job}-")]
        assert len(pods) == 8
        return pods


def test_act_1_pod_at_a_time_both_jobs_hold_half_and_nothing_moves() -> None:
    story = Story()
    story.apply("act-1-pod-at-a-time.yaml", pause_s=0.5)
    story.cluster.sleep(600)
    assert (story.bound("job-a"), story.bound("job-b")) == (6, 6)


def test_act_2_as_gangs_one_runs_the_other_holds_nothing_and_follows() -> None:
    story = Story()
    story.apply("act-2-gangs.yaml")
    story.cluster.sleep(1)
    assert (story.bound("job-a"), story.bound("job-b")) == (8, 0)
    message = story.message("job-b")
    assert "needs 8 × 1 nvidia.com/gpu, 4 free" in message
    assert "default/job-a ends" in message
    assert "4 more nodes like n" in message
    story.cluster.sleep(5)
    assert story.succeeded("job-a") == 8
    assert story.bound("job-b") == 8


def test_act_3_a_lowered_minimum_starts_a_waiting_gang_at_once() -> None:
    story = Story()
    story.apply("act-2-gangs.yaml")
    story.cluster.sleep(10)
    story.apply("act-3-another-gang.yaml")
    story.cluster.sleep(30)
    assert story.bound("job-c") == 0
    change = yaml.safe_load((FILES / "act-3-lower-min-count.yaml").read_text(encoding="utf-8"))
    story.api.must("PATCH", f"{GROUPS}/job-c", change, MERGE_PATCH)
    story.cluster.sleep(0.2)
    assert story.bound("job-c") == 4
