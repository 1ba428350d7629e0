"""Plays one case: each verb is a row of a table, every wait goes through the injected clock.

Comes in: a `Case`, an `Api`, a clock and whoever can stop the scheduler.  Goes out: None, or CaseFailed
with the step that failed.  The same code serves virtual time and real servers.
"""

import copy
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from tests.conformance import manifests
from tests.conformance.case import Case
from tests.conformance.expectations import Memory, Sight, complaints
from tests.conformance.matching import field_at
from tests.conformance.names import spread
from tests.conformance.server import (
    BUDGETS,
    COLLECTIONS,
    COMPOSITES,
    GROUPS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    Api,
    Clock,
    Object,
    RequestRefused,
    SchedulerControl,
)

POLL_S = 0.15
WITHIN_S = 30.0  # how long an expectation may take to come true
SETTLE_S = 1.0  # how long it must stay so
PAUSE_S = 0.2  # after cleaning and after making nodes, so that watches have seen it


class CaseFailed(AssertionError):
    """What is there is not what the case wants."""


class Options(Struct, frozen=True):
    """`stock`: the scheduler is kube-scheduler, so `right` steps are left out and `stock` steps checked.

    `compare_texts`: the scheduler's words count too, not only that there are some.  `leaves_out_right`: the
    `right` steps of this case are about another component, and that one is the stock one.
    """

    scheduler_name: str = "muster"
    stock: bool = False
    leaves_out_right: bool = False
    compare_texts: bool = False


class Interpreter:
    """One run of one case."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        options: Options,
        control: SchedulerControl | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._options = options
        self._control = control
        self._memory = Memory()
        self.made_paths: list[str] = []  # of objects made by path: whoever cleans must remove them
        self.unmet: list[str] = []  # what a case prefers and is not so: told, and no failure
        self._verbs: dict[str, Callable[[Any], None]] = {
            "create": self._create,
            "delete": self._delete,
            "patch": self._patch,
            "bind": self._bind,
            "wait": self._clock.sleep,
            "scheduler": self._order_scheduler,
            "remember": self._remember,
            "refuse": self._refuse,
            "expect": self._expect,
            "right": self._right,
            "stock": self._stock,
            "prefer": self._prefer,
        }

    def run(self, case: Case) -> None:
        """Make the nodes, then take the steps; raises CaseFailed at the first that is not as wanted."""
        self._clock.sleep(PAUSE_S)
        for names, short in case.nodes.items():
            for name in spread(names):
                self._create_node(name, short or {})
        self._clock.sleep(PAUSE_S)
        for number, step in enumerate(case.steps, start=1):
            try:
                self._take(step)
            except (CaseFailed, RequestRefused) as error:
                raise CaseFailed(f"{case.id} step {number} ({next(iter(step))}): {error}") from error

    def _take(self, step: Object) -> None:
        ((verb, arguments),) = step.items()
        self._verbs[verb](arguments)

    # ── making things ────────────────────────────────────────────────────────────────────────────

    def _create(self, short: Object) -> None:
        if "pod" in short or "pods" in short:
            for name in spread(short.get("pods") or short["pod"]):
                self._create_pod(name, short)
        elif "node" in short:
            for name in spread(short["node"]):
                self._create_node(name, short)
        elif "groups" in short:
            self._create_groups(short)
        elif "group" in short:
            self._api.must(
                "POST", GROUPS_BY_VERSION[bool(short.get("alpha"))], manifests.group_manifest(short)
            )
        elif "composite" in short:
            self._api.must("POST", COMPOSITES, manifests.composite_manifest(short))
        elif "priorityClass" in short:
            self._api.must("POST", PRIORITY_CLASSES, manifests.priority_class_manifest(short))
            self._clock.sleep(PAUSE_S)  # admission learns of it by a watch of its own
        elif "pdb" in short:
            self._create_budget(short)
        else:
            self._create_object(short["path"], short["object"])

    def _create_node(self, name: str, short: Object) -> None:
        self._api.must("POST", NODES, manifests.node_manifest(name, short))
        # a server that taints new nodes as not ready is told otherwise
        self._api.merge(f"{NODES}/{name}", {"spec": {"taints": short.get("taints")}})

    def _create_pod(self, name: str, short: Object) -> None:
        manifest = manifests.pod_manifest(name, short, scheduler=self._options.scheduler_name)
        self._memory.uids[name] = self._api.must("POST", PODS, manifest)["metadata"]["uid"]
        status: Object = {}
        if "nominated" in short:
            status["nominatedNodeName"] = short["nominated"]
        if "node" in short:
            status |= manifests.running_status(short)
        if status:
            self._api.merge(f"{PODS}/{name}/status", {"status": status})

    def _create_groups(self, short: Object) -> None:
        """Many alike, each with `members` pods named GROUP-0, GROUP-1, …"""
        for group in spread(short["groups"]):
            of_group = {**short, "group": group}
            self._api.must("POST", GROUPS, manifests.group_manifest(of_group))
            for number in range(short.get("members", 0)):
                self._create_pod(f"{group}-{number}", of_group)

    def _create_budget(self, short: Object) -> None:
        self._api.must("POST", BUDGETS, manifests.budget_manifest(short))
        if "disruptionsAllowed" in short:
            self._api.merge(f"{BUDGETS}/{short['pdb']}/status", {"status": manifests.budget_status(short)})

    def _create_object(self, path: str, given: Object) -> None:
        made = copy.deepcopy(given)
        if made["kind"] in POD_SPEC_OF:
            field_at(made, POD_SPEC_OF[made["kind"]]).setdefault(
                "schedulerName", self._options.scheduler_name
            )
        self.made_paths.append(f"{path}/{made['metadata']['name']}")
        uid = self._api.must("POST", path, made)["metadata"]["uid"]
        if made["kind"] == "Pod":
            self._memory.uids[made["metadata"]["name"]] = uid

    # ── changing things ──────────────────────────────────────────────────────────────────────────

    def _delete(self, short: Object) -> None:
        options = {"propagation": "propagationPolicy", "grace": "gracePeriodSeconds"}
        body = manifests.delete_options(
            **{field: short[word] for word, field in options.items() if word in short}
        )
        for path in self._paths(short):
            self._api.must("DELETE", path, body)

    def _patch(self, short: Object) -> None:
        suffix = "/status" if short.get("subresource") == "status" else ""
        for path in self._paths(short):
            self._api.merge(path + suffix, short["with"])

    def _bind(self, short: Object) -> None:
        target = {"kind": "Node", "name": short["to"]}
        metadata = {"name": short["pod"]}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        self._api.must("POST", f"{PODS}/{short['pod']}/binding", body)

    def _order_scheduler(self, order: str) -> None:
        if self._control is None:
            raise CaseFailed("nobody here can stop and start the scheduler")
        self._control(order)

    def _paths(self, short: Object) -> list[str]:
        """Paths of the objects that a step names."""
        for word, collection in COLLECTIONS.items():
            if word in short:
                return [f"{collection}/{name}" for name in spread(short[word])]
        if "each" in short:
            collection = short["each"].partition("?")[0]
            return [f"{collection}/{found['metadata']['name']}" for found in self._api.items(short["each"])]
        return [short["path"]]

    # ── judging ──────────────────────────────────────────────────────────────────────────────────

    def _sight(self) -> Sight:
        return Sight(self._api, self._memory, compare_texts=self._options.compare_texts)

    def _remember(self, short: Object) -> None:
        sight = self._sight()
        for name, place in short.items():
            self._memory.kept[name] = field_at(sight.fetch(place["of"]), place["field"])

    def _expect(self, expectation: Object) -> None:
        """Wait until all holds, then that it still holds after a while."""
        until_s = self._clock.now_s() + expectation.get("within", WITHIN_S)
        while True:
            wrong = complaints(self._sight(), expectation)
            if not wrong:
                self._clock.sleep(expectation.get("settle", SETTLE_S))
                wrong = complaints(self._sight(), expectation)
                if not wrong:
                    return
            if self._clock.now_s() > until_s:
                raise CaseFailed("; ".join(wrong))
            self._clock.sleep(POLL_S)

    def _right(self, expectation: Object) -> None:
        """What ought to hold where the stock scheduler errs."""
        if not self._options.stock and not self._options.leaves_out_right:
            self._expect(expectation)

    def _stock(self, expectation: Object) -> None:
        """What the stock scheduler does and a better one need not."""
        if self._options.stock:
            self._expect(expectation)

    def _prefer(self, expectation: Object) -> None:
        """What would be better still."""
        self.unmet += complaints(self._sight(), expectation)

    def _refuse(self, short: Object) -> None:
        try:
            self._take(short["step"])
        except RequestRefused as error:
            if error.code != short["code"] or short.get("message", "") not in error.message:
                raise CaseFailed(f"refused otherwise: {error}") from error
            return
        raise CaseFailed(f"should have been refused with {short['code']}")


# where a group is posted: as v1beta1, or, with `alpha: true`, as v1alpha3
GROUPS_BY_VERSION = {False: GROUPS, True: COMPOSITES.replace("compositepodgroups", "podgroups")}

# kinds whose pods get the scheduler under test, and where their pod spec is
POD_SPEC_OF = {
    "Pod": "spec",
    "Job": "spec.template.spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
}
