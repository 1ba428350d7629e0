"""Hold what schedulers did with a claims scenario against the slow checker, and against each other.

In come states before and after each pod; out come findings: broken, or different and explained by a rule of
`EXPLANATIONS`, which docs/beyond-stock.md tells users of.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs
from tests.differential.claims.parts import Given, Parts, share_of
from tests.differential.claims.rules import (
    State,
    TooLarge,
    bears,
    can_make,
    claim_instead,
    disks_of,
    first_way,
    keeps,
    may_have,
    offers_on,
    reaches,
    requests_of,
    suits,
    takes,
)
from tests.differential.claims.scenario import NOW, ClaimScenario, Short
from tests.differential.judge import Finding

EXPLANATIONS = {
    "greedy-volumes": "stock gives each claim of a pod the smallest volume in turn and goes back on none",
    "zones-unseen": "stock looks at the zones on a volume's labels only when somebody has it already",
    "fails-for-one-node": "stock fails the pod for an error in the devices of one node",
    "admins-keep": "stock gives no claim of a pod what an earlier one of it may look at with admin access",
    "empty-claim": "stock makes an empty claim in place of a resource that the node offers, and fails on it",
    "claims-differ": "earlier devices, volumes or nodes differ, and each answer is right for its own cluster",
    "waited-before": "stock binds a pod late that it had left waiting for another of these rules",
    "stock-waits": "stock had not yet decided within the time of the scenario",
}
FAILED = 'running "DynamicResources" filter plugin'
EMPTY = 'running PreBind plugin "DynamicResources": nil or empty request mappings'


class Note(Struct, frozen=True):
    """What was seen when a pod had come to rest."""

    state: State
    settled: bool
    said: dict[str, str] = {}


class Claimed(Struct, frozen=True):
    """One scenario on one cluster: what was given away before the first pod, and a `Note` for each."""

    seed: int
    start: State
    notes: list[Note]


def judge(scenario: ClaimScenario, stock: Claimed, muster: Claimed) -> list[Finding]:
    """All differences between the two, and every rule that either broke."""
    found: list[Finding] = []
    for number, pod in enumerate(scenario.pods):
        rules = list(_compare(scenario, number, pod, stock, muster))
        found += [Finding(scenario.seed, number, rule, text) for rule, text in rules]
        if any(rule is None for rule, _ in rules):
            break  # what comes after it stands on it
    return found


def judge_alone(scenario: ClaimScenario, muster: Claimed) -> list[Finding]:
    """What Muster did against the slow checker alone."""
    found = []
    for number, pod in enumerate(scenario.pods):
        texts = list(complaints(scenario, _before(scenario, muster, number), muster.notes[number], pod))
        found += [Finding(scenario.seed, number, None, f"muster: {text}") for text in texts]
    return found


def _compare(
    scenario: ClaimScenario, number: int, pod: Short, stock: Claimed, muster: Claimed
) -> Iterator[tuple[str | None, str]]:
    theirs, ours = stock.notes[number], muster.notes[number]
    for text in complaints(scenario, _before(scenario, muster, number), ours, pod):
        yield None, f"muster: {text}"
    wrong = list(complaints(scenario, _before(scenario, stock, number), theirs, pod))
    late = set(_came_late(_before(scenario, stock, number), theirs, pod))
    for text in wrong:
        if late:
            rule = "waited-before" if late <= _left_waiting(scenario, number, stock) else None
        else:
            rule = _explain(scenario, _before(scenario, stock, number), theirs, pod)
        yield rule, f"stock: {text}"
    name = pod["pod"]
    bound = [name in note.state.places for note in (theirs, ours)]
    if bound[0] != bound[1] and not wrong:
        same = _before(scenario, stock, number) == _before(scenario, muster, number)
        who = "muster" if bound[1] else "stock"
        yield None if same else "claims-differ", f"only {who} bound {name}"


def _came_late(before: State, note: Note, pod: Short) -> list[str]:
    return sorted(set(note.state.places) - set(before.places) - {pod["pod"]})


def _left_waiting(scenario: ClaimScenario, number: int, stock: Claimed) -> set[str]:
    """The earlier pods that stock did not bind when they came, although it could have."""
    return {
        pod["pod"]
        for earlier, pod in enumerate(scenario.pods[:number])
        if pod["pod"] not in stock.notes[earlier].state.places
        and any(complaints(scenario, _before(scenario, stock, earlier), stock.notes[earlier], pod))
    }


def _before(scenario: ClaimScenario, played: Claimed, number: int) -> State:
    """The state in which the pod came; volumes that are bound at once may come after it on a busy machine."""
    state = played.notes[number - 1].state if number else played.start
    at_once = {
        disk["disk"] for pod in scenario.pods for disk in disks_of(scenario, pod) if disk["class"] == NOW
    }
    late = {disk: name for disk, name in played.notes[number].state.volumes.items() if disk in at_once}
    return structs.replace(state, volumes={**late, **state.volumes})


def complaints(scenario: ClaimScenario, before: State, note: Note, pod: Short) -> Iterator[str]:
    """What is wrong with what became of one pod."""
    name = pod["pod"]
    if late := _came_late(before, note, pod):
        yield f"{late} found room only now"
        return
    try:
        able = [node for node in scenario.nodes if takes(scenario, before, pod, node)]
        node = note.state.places.get(name)
        if node is None:
            if able:
                yield f"{name} is not bound ({note.said.get(name, '')}), but {able} could take it"
            elif given := sorted(_given_away(before, note.state)):
                yield f"{name} is not bound and has {given}"
            elif not note.settled:
                yield f"{name} did not come to rest"
        elif node not in able:
            yield f"{name} is on {node}, {able or 'no node'} could take it"
        else:
            yield from _broken_devices(scenario, before, note.state, pod, node)
            yield from _broken_volumes(scenario, before, note.state, pod, node)
    except TooLarge:
        return


def _given_away(before: State, after: State) -> set[str]:
    new_claims = after.allocated.keys() - before.allocated.keys()
    return new_claims | (after.volumes.keys() - before.volumes.keys())


def _broken_devices(
    scenario: ClaimScenario, before: State, after: State, pod: Short, node: str
) -> Iterator[str]:
    offers = dict(offers_on(scenario, node)[0])
    known = {short["claim"]: short for short in scenario.claims}
    taken = before.taken
    first = first_way(scenario, before, pod, node) or {}
    instead = claim_instead(scenario, pod, node)
    names = [name for name in pod.get("claims", ()) if name not in before.allocated]
    if instead is not None:
        known[instead["claim"]] = instead
        names.append(instead["claim"])
    if unasked := after.allocated.keys() - before.allocated.keys() - set(names):
        yield f"{sorted(unasked)} got devices for {pod['pod']}, which does not claim them"
    for name in names:
        given = after.allocated.get(name, [])
        yield from _broken_claim(known[name], given, offers, taken)
        taken |= {each.device for each in given if each.share is None and not each.admin}
        wanted = list(dict.fromkeys(each.request for each in first[name]))
        if wanted != list(dict.fromkeys(each.request for each in given)):
            yield f"claim {name} got {[each.request for each in given]}, {wanted} could be met"
    if not Parts(scenario).are_enough(after.given):
        yield f"more has been given away than there is, last to {pod['pod']}"


def _broken_claim(
    claim: Short,
    given: list[Given],
    offers: dict[tuple[str, str, str], Short],
    taken: set[tuple[str, str, str]],
) -> Iterator[str]:
    name = claim["claim"]
    requests = requests_of(claim)
    for each in given:
        request, device = requests[each.request], offers.get(each.device)
        if device is None:
            yield f"claim {name} got {each.device}, which its node does not reach"
        elif not may_have(request, each.device[0], device) or not bears(request, device):
            yield f"claim {name} got {each.device}, which is not what it asks for"
        elif not each.admin and each.device in taken:
            yield f"claim {name} got {each.device}, which is another's"
        elif each.share != (
            right := share_of(device, request.get("needs", {})) if "shared" in device else None
        ):
            yield f"claim {name} got {each.share} of {each.device}, {right} would be right"
    for request_name in dict.fromkeys(each.request for each in given):
        count = sum(each.request == request_name for each in given)
        wanted = requests[request_name]["count"]
        if wanted not in ("All", count):
            yield f"claim {name} got {count} devices for {request_name}"
    if not keeps(claim, [offers.get(each.device, {}) for each in given]):
        yield f"claim {name} got devices that do not keep its constraint"


def _broken_volumes(
    scenario: ClaimScenario, before: State, after: State, pod: Short, node: str
) -> Iterator[str]:
    known = {short["volume"]: short for short in scenario.volumes}
    for disk in disks_of(scenario, pod):
        name = disk["disk"]
        if name in before.volumes:
            continue
        if name not in after.volumes:
            yield f"{pod['pod']} is bound and {name} has no volume"
        elif not after.volumes[name]:
            if after.made_on[name] != node or not can_make(scenario, disk, node):
                yield f"a volume was made for {name} on {after.made_on[name]}"
        elif after.volumes[name] in before.volumes.values():
            yield f"{name} has {after.volumes[name]}, which is another's"
        elif not suits(volume := known[after.volumes[name]], disk) or not reaches(scenario, volume, node):
            yield f"{name} has {after.volumes[name]}, which is not what it asks for, or not there"


def _explain(scenario: ClaimScenario, before: State, theirs: Note, pod: Short) -> str | None:
    """Why stock did what the slow checker would not."""
    node = theirs.state.places.get(pod["pod"])
    if not theirs.settled:
        return "stock-waits"
    still_open = [disk for disk in disks_of(scenario, pod) if disk["disk"] not in before.volumes]
    if node is None and theirs.said.get(pod["pod"], "").startswith(FAILED):
        return "fails-for-one-node"
    if node is None and "asks" in pod and theirs.said.get(pod["pod"], "").startswith(EMPTY):
        return "empty-claim"
    if node is None and not any(
        takes(scenario, before, pod, each, admins_keep=True) for each in scenario.nodes
    ):
        return "admins-keep"
    if node is None:
        return "greedy-volumes" if len(still_open) > 1 else None
    zoned = any(
        "topology" in key or "beta" in key for short in scenario.volumes for key in short.get("labels", {})
    )
    return "zones-unseen" if zoned and takes(scenario, before, pod, node, zones=False) else None


def rules_of(findings: Sequence[Finding]) -> list[str | None]:
    """The rules, None for what nothing explains."""
    return [finding.rule for finding in findings]
