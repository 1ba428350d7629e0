"""Devices for several claims at once, against every way there is."""

from itertools import combinations, product

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from tests.unit.cluster.device_objects import DRIVER, make_claim, make_device, make_request, make_slice

from muster.api.devices import (
    ALL,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    Request,
    ResourceClaim,
)
from muster.cluster.devices import DeviceId, Offer
from muster.placement.device_allocation import Counter, GaveUp, Given, allocate, tolerates
from muster.placement.device_selectors import selector_of

PAIR = f"{DRIVER}/pair"


def offers_of(*kinds: tuple[str, int]) -> list[Offer]:
    """Devices with a model and a pair each."""
    devices = [make_device(f"gpu-{i}", model=model, pair=pair) for i, (model, pair) in enumerate(kinds)]
    found = make_slice("n1", *devices)
    return [Offer((DRIVER, "n1", device.name), device, found) for device in devices]


def eligible(request: DeviceRequest, offer: Offer) -> bool:
    return all(
        selector_of(selector.cel.expression).meets(DRIVER, offer.device)
        for selector in request.selectors or ()
        if selector.cel is not None
    )


def find(
    claims: list[ResourceClaim], offers: list[Offer], taken: frozenset[DeviceId] = frozenset()
) -> list[list[str]] | None:
    found = allocate(claims, offers, lambda device: device in taken, eligible)
    return None if found is None else [[each.offer.device.name for each in claim] for claim in found]


def of_model(model: str) -> str:
    return f'device.attributes["{DRIVER}"].model == "{model}"'


def test_claims_get_devices_of_their_own() -> None:
    offers = offers_of(("a", 0), ("a", 0))
    assert find([make_claim("c"), make_claim("d")], offers) == [["gpu-0"], ["gpu-1"]]
    assert find([make_claim("c"), make_claim("d"), make_claim("e")], offers) is None


def test_a_first_claim_leaves_the_special_device_to_one_that_needs_it() -> None:
    offers = offers_of(("special", 0), ("plain", 0))
    picky = make_claim("d", make_request("r", 1, of_model("special")))
    assert find([make_claim("c"), picky], offers) == [["gpu-1"], ["gpu-0"]]


def test_devices_of_a_claim_match_or_differ_in_an_attribute() -> None:
    offers = offers_of(("a", 0), ("a", 1), ("a", 1))
    two = make_request("r", 2)
    assert find([make_claim("c", two, match=PAIR)], offers) == [["gpu-1", "gpu-2"]]
    assert find([make_claim("c", two, distinct=PAIR)], offers) == [["gpu-0", "gpu-1"]]
    assert find([make_claim("c", make_request("r", 3), distinct=PAIR)], offers) is None


def test_an_attribute_that_is_missing_matches_nothing() -> None:
    assert find([make_claim("c", match=f"{DRIVER}/nope")], offers_of(("a", 0))) is None


def test_taken_devices_are_left_alone_but_for_admins() -> None:
    offers = offers_of(("a", 0))
    taken = frozenset({offers[0].id})
    assert find([make_claim("c")], offers, taken) is None
    admin = make_claim("c", make_request("r", 1, admin_access=True))
    assert find([admin], offers, taken) == [["gpu-0"]]
    assert find([admin, make_claim("d")], offers) == [["gpu-0"], ["gpu-0"]]


def test_all_means_every_device_that_would_do_and_none_in_other_hands() -> None:
    offers = offers_of(("a", 0), ("b", 0), ("a", 0))
    every = make_claim("c", make_request("r", 0, of_model("a"), allocation_mode=ALL))
    assert find([every], offers) == [["gpu-0", "gpu-2"]]
    assert find([every], offers, frozenset({offers[0].id})) is None
    assert find([every], offers_of(("b", 0))) is None


def test_alternatives_are_tried_in_their_order() -> None:
    def alternative(name: str, count: int, model: str) -> DeviceRequest:
        wanted = make_request(name, count, of_model(model)).exactly
        assert wanted is not None
        return DeviceRequest(name, "gpu", wanted.selectors, count=count)

    request = Request("r", None, [alternative("big", 2, "big"), alternative("small", 1, "small")])
    claim = make_claim("c", request)
    both = offers_of(("big", 0), ("big", 0), ("small", 0))
    found = allocate([claim], both, lambda device: False, eligible)
    assert found is not None
    assert [each.request for each in found[0]] == ["r/big", "r/big"]
    found = allocate([claim], both[1:], lambda device: False, eligible)
    assert found is not None
    assert [each.request for each in found[0]] == ["r/small"]


def test_a_search_that_takes_too_long_says_that_it_gave_up() -> None:
    offers = offers_of(*((f"m{i}", i) for i in range(24)))
    claim = make_claim("c", make_request("r", 12), make_request("s", 13), distinct=PAIR)
    with pytest.raises(GaveUp):
        allocate([claim], offers, lambda device: False, eligible, Counter(500))


@pytest.mark.parametrize(
    ("toleration", "bears"),
    [
        (DeviceToleration("broken", "Exists"), True),
        (DeviceToleration("", "Exists"), True),
        (DeviceToleration("broken", "Equal", "x"), True),
        (DeviceToleration("broken", "Equal", "y"), False),
        (DeviceToleration("broken", "Exists", effect="NoExecute"), False),
        (DeviceToleration("other", "Exists"), False),
    ],
)
def test_a_taint_must_be_tolerated(toleration: DeviceToleration, bears: bool) -> None:
    taint = DeviceTaint("broken", "x", "NoSchedule")
    assert tolerates(DeviceRequest(tolerations=[toleration]), taint) is bears
    assert tolerates(DeviceRequest(), DeviceTaint("broken", "x", "None"))
    assert not tolerates(DeviceRequest(), taint)


# ── every way there is ───────────────────────────────────────────────────────────────────────────

models = st.sampled_from(["a", "b"])
devices = st.lists(st.tuples(models, st.integers(0, 1)), max_size=5)
requests = st.builds(lambda count, model: (count, model), st.integers(1, 2), st.sampled_from(["a", "b", ""]))
claims = st.lists(
    st.tuples(st.lists(requests, min_size=1, max_size=2), st.sampled_from(["", "match", "distinct"])),
    min_size=1,
    max_size=3,
)
Drawn = list[tuple[list[tuple[int, str]], str]]


def build(wanted: Drawn) -> list[ResourceClaim]:
    return [
        make_claim(
            f"c{index}",
            *(
                make_request(f"r{number}", count, *([of_model(model)] if model else []))
                for number, (count, model) in enumerate(asked)
            ),
            match=PAIR if rule == "match" else "",
            distinct=PAIR if rule == "distinct" else "",
        )
        for index, (asked, rule) in enumerate(wanted)
    ]


def exists(wanted: Drawn, kinds: list[tuple[str, int]]) -> bool:
    """Try every choice of devices for every request."""
    slots = [(claim, count, model) for claim, (asked, _) in enumerate(wanted) for count, model in asked]
    fitting = [
        list(combinations([i for i, (kind, _) in enumerate(kinds) if model in ("", kind)], count))
        for _, count, model in slots
    ]
    for chosen in product(*fitting):
        used = [index for group in chosen for index in group]
        if len(set(used)) < len(used):
            continue
        if all(
            _keeps(
                rule,
                [
                    kinds[i][1]
                    for (owner, _, _), group in zip(slots, chosen, strict=True)
                    if owner == claim
                    for i in group
                ],
            )
            for claim, (_, rule) in enumerate(wanted)
        ):
            return True
    return False


def _keeps(rule: str, pairs: list[int]) -> bool:
    if rule == "match":
        return len(set(pairs)) == 1
    return rule != "distinct" or len(set(pairs)) == len(pairs)


@settings(max_examples=200, deadline=None)
@drawn(claims, devices)
def test_a_way_is_found_exactly_where_there_is_one(wanted: Drawn, kinds: list[tuple[str, int]]) -> None:
    found = allocate(build(wanted), offers_of(*kinds), lambda device: False, eligible)
    assert (found is not None) == exists(wanted, kinds)
    if found is None:
        return
    used = [each.offer.id for claim in found for each in claim]
    assert len(set(used)) == len(used)
    for claim, (asked, rule) in zip(found, wanted, strict=True):
        _check(claim, asked, rule)


def _check(claim: tuple[Given, ...], asked: list[tuple[int, str]], rule: str) -> None:
    for number, (count, model) in enumerate(asked):
        mine = [each for each in claim if each.request == f"r{number}"]
        assert len(mine) == count
        for each in mine:
            attributes = each.offer.device.attributes or {}
            assert model in ("", attributes["model"].string)
    pairs = [(each.offer.device.attributes or {})["pair"].int_value or 0 for each in claim]
    assert _keeps(rule, pairs)
