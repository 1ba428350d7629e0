"""Devices for several claims at once, against every way there is."""

from itertools import combinations, product

import msgspec
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from tests.unit.cluster.device_objects import (
    DRIVER,
    make_claim,
    make_counters,
    make_device,
    make_part,
    make_pool,
    make_request,
    make_share,
    make_slice,
)
from tests.unit.cluster.device_objects import given as allocated

from muster.api.devices import (
    ALL,
    CapacityRequirements,
    Device,
    DeviceAttribute,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    Request,
    ResourceClaim,
)
from muster.cluster.device_pools import DeviceId, Offer
from muster.cluster.devices import NO_DEVICES, DeviceBook
from muster.placement.device_allocation import (
    FIT,
    TAINTED,
    Counter,
    GaveUp,
    Given,
    Reach,
    allocate,
    tolerates,
)
from muster.placement.device_capacity import consumption
from muster.placement.device_ledger import Ledger
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
    ledger = Ledger(NO_DEVICES._replace(taken=dict.fromkeys(taken, (("default", "x"),))))
    found = allocate(claims, Reach(offers), ledger, eligible)
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


def test_one_claim_has_no_device_twice_not_even_as_an_admin() -> None:
    admin, plain = make_request("a", 1, admin_access=True), make_request("p")
    for asked in ((admin, plain), (plain, admin), (admin, make_request("b", 1, admin_access=True))):
        assert find([make_claim("c", *asked)], offers_of(("a", 0))) is None
        assert find([make_claim("c", *asked)], offers_of(("a", 0), ("a", 0))) == [["gpu-0", "gpu-1"]]


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
    found = allocate([claim], Reach(both), Ledger(), eligible)
    assert found is not None
    assert [each.request for each in found[0]] == ["r/big", "r/big"]
    found = allocate([claim], Reach(both[1:]), Ledger(), eligible)
    assert found is not None
    assert [each.request for each in found[0]] == ["r/small"]


def test_a_search_that_takes_too_long_says_that_it_gave_up() -> None:
    offers = offers_of(*((f"m{i}", i) for i in range(24)))
    claim = make_claim("c", make_request("r", 12), make_request("s", 13), distinct=PAIR)
    with pytest.raises(GaveUp):
        allocate([claim], Reach(offers), Ledger(), eligible, Counter(500))


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
    found = allocate(build(wanted), Reach(offers_of(*kinds)), Ledger(), eligible)
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


# ── counters, shares and alternatives, every way there is ────────────────────────────────────────

SHARED_MEMORY = 4
kinds_of_device = st.sampled_from(["whole", "shared", "part-0", "part-1", "big-0", "big-1"])
world = st.tuples(
    st.lists(st.tuples(kinds_of_device, st.integers(0, 1)), max_size=5), st.integers(1, 3), st.booleans()
)
wants = st.tuples(
    st.sampled_from(["whole", "shared", "part", "big", ""]), st.integers(1, 2), st.integers(1, 4)
)
asks = st.lists(
    st.tuples(
        st.lists(st.lists(wants, min_size=1, max_size=2), min_size=1, max_size=2),
        st.sampled_from(["", "match", "distinct"]),
    ),
    min_size=1,
    max_size=3,
)
World = tuple[list[tuple[str, int]], int, bool]
Want = tuple[str, int, int]
Ask = list[tuple[list[list[Want]], str]]


def build_world(drawn_world: World) -> tuple[Ledger, list[Offer]]:
    """Parts take 1 of a counter set, big ones 2; the first device may be somebody else's."""
    kinds, cores, is_taken = drawn_world
    devices = []
    for index, (kind, pair) in enumerate(kinds):
        word, _, counter_set = kind.partition("-")
        device = make_device(f"d{index}", memory=str(SHARED_MEMORY), model=word, pair=pair)
        if counter_set:
            taken = make_part("x", counter_set, cores=1 if word == "part" else 2).consumes_counters
            device = msgspec.structs.replace(device, consumes_counters=taken)
        if word == "shared":
            device = msgspec.structs.replace(device, allow_multiple_allocations=True)
        devices.append(device)
    book = DeviceBook()
    for each in make_pool("n1", [make_counters("0", cores=cores), make_counters("1", cores=cores)], *devices):
        book.apply(each)
    if is_taken and kinds:
        is_shared = kinds[0][0] == "shared"
        book.apply(make_claim("x", allocation=make_share("d0", "1") if is_shared else allocated("d0")))
    found = book.freeze()
    return Ledger(found), list(found.pools.offers)


def build_asks(drawn_asks: Ask) -> list[ResourceClaim]:
    return [
        make_claim(
            f"c{index}",
            *(
                _build_request(f"r{number}", alternatives)
                for number, alternatives in enumerate(requests_of_claim)
            ),
            match=PAIR if rule == "match" else "",
            distinct=PAIR if rule == "distinct" else "",
        )
        for index, (requests_of_claim, rule) in enumerate(drawn_asks)
    ]


def _build_request(name: str, alternatives: list[Want]) -> Request:
    def build_one(name: str, want: Want) -> DeviceRequest:
        word, count, memory = want
        fields = {"capacity": CapacityRequirements({"memory": memory})} if word == "shared" else {}
        wanted = make_request(name, count, *([of_model(word)] if word else []), **fields).exactly
        assert wanted is not None
        return wanted

    if len(alternatives) == 1:
        return Request(name, build_one("", alternatives[0]))
    named = [
        msgspec.structs.replace(build_one("", want), name=f"a{number}")
        for number, want in enumerate(alternatives)
    ]
    return Request(name, None, named)


def way_exists(drawn_world: World, drawn_asks: Ask) -> bool:
    """Try every alternative with every choice of devices for every request."""
    kinds, cores, is_taken = drawn_world
    slots = [(claim, alternatives) for claim, (asked, _) in enumerate(drawn_asks) for alternatives in asked]
    options = [
        [
            (claim, want, group)
            for want in alternatives
            for group in combinations(
                [i for i, (kind, _) in enumerate(kinds) if want[0] in ("", kind.partition("-")[0])], want[1]
            )
        ]
        for claim, alternatives in slots
    ]
    return any(
        _all_fit(chosen, kinds, cores, is_taken) and _all_keep(chosen, kinds, drawn_asks)
        for chosen in product(*options)
    )


def _all_fit(
    chosen: tuple[tuple[int, Want, tuple[int, ...]], ...],
    kinds: list[tuple[str, int]],
    cores: int,
    is_taken: bool,
) -> bool:
    memory: dict[int, int] = {}
    users: dict[int, int] = {}
    if is_taken and kinds:
        users[0], memory[0] = 1, 1
    for _, (word, _, amount), group in chosen:
        for index in group:
            users[index] = users.get(index, 0) + 1
            share = amount if word == "shared" else SHARED_MEMORY
            memory[index] = memory.get(index, 0) + share
    for index, count in users.items():
        if kinds[index][0] == "shared":
            if memory[index] > SHARED_MEMORY:
                return False
        elif count > 1:
            return False
    spent = {"0": 0, "1": 0}
    for index in users:
        word, _, counter_set = kinds[index][0].partition("-")
        if counter_set:
            spent[counter_set] += 1 if word == "part" else 2
    # what was given before may be more than there is: only what is added counts
    first = kinds[0][0].partition("-") if is_taken and kinds else ("", "", "")
    before = {first[2]: 1 if first[0] == "part" else 2} if first[2] else {}
    return all(amount <= cores or amount == before.get(name, 0) for name, amount in spent.items())


def _all_keep(
    chosen: tuple[tuple[int, Want, tuple[int, ...]], ...], kinds: list[tuple[str, int]], drawn_asks: Ask
) -> bool:
    for claim, (_, rule) in enumerate(drawn_asks):
        pairs = [kinds[index][1] for owner, _, group in chosen if owner == claim for index in group]
        if not _keeps(rule, pairs):
            return False
    return True


@settings(max_examples=400, deadline=None)
@drawn(world, asks)
def test_a_way_through_counters_shares_and_alternatives_is_found_where_there_is_one(
    drawn_world: World, drawn_asks: Ask
) -> None:
    ledger, offers = build_world(drawn_world)
    found = allocate(build_asks(drawn_asks), Reach(offers), ledger, is_eligible)
    assert (found is not None) == way_exists(drawn_world, drawn_asks)
    if found is None:
        return
    fresh, _ = build_world(drawn_world)
    for claim in found:
        for each in claim:
            assert fresh.is_free(each.offer, each.amounts)
            fresh.give(each.offer, each.amounts)


def is_eligible(request: DeviceRequest, offer: Offer) -> int:
    return int(eligible(request, offer) and consumption(offer.device, request.capacity) is not None)


def test_like_gpus_in_parts_are_not_tried_one_by_one() -> None:
    """Five small parts need two of the four GPUs, three big ones the other three."""
    counters = [make_counters(f"g{gpu}", cores=3) for gpu in range(4)]
    parts = [make_part(f"g{gpu}-{number}", f"g{gpu}", cores=1) for gpu in range(4) for number in range(3)]
    parts += [make_part(f"g{gpu}-big", f"g{gpu}", cores=3) for gpu in range(4)]
    book = DeviceBook()
    for each in make_pool("n1", counters, *(_sized(part) for part in parts)):
        book.apply(each)
    devices = book.freeze()
    small, big = (make_request(name, count, of_model(name)) for name, count in (("small", 5), ("big", 3)))
    claim, counter = make_claim("c", small, big), Counter(500)
    assert allocate([claim], Reach(devices.pools.offers), Ledger(devices), is_eligible, counter) is None


def _sized(part: Device) -> Device:
    model = "big" if part.name.endswith("big") else "small"
    return msgspec.structs.replace(part, attributes={"model": DeviceAttribute(string=model)})


def test_a_request_that_nothing_fits_ends_the_search_before_it_begins() -> None:
    offers = offers_of(*((f"m{i}", i) for i in range(24)))
    claim = make_claim("c", make_request("r", 12), make_request("s", 1, "false"))
    assert allocate([claim], Reach(offers), Ledger(), eligible, Counter(0)) is None


def test_all_fails_beside_a_taint_and_while_a_pool_is_being_changed() -> None:
    every = make_claim("c", make_request("r", 0, allocation_mode=ALL))
    offers = offers_of(("a", 0), ("b", 0))
    assert allocate([every], Reach(offers), Ledger(), eligible) is not None
    assert allocate([every], Reach(offers, is_whole=False), Ledger(), eligible) is None
    tainted = {"gpu-0": TAINTED, "gpu-1": FIT}
    answer = allocate([every], Reach(offers), Ledger(), lambda request, offer: tainted[offer.device.name])
    assert answer is None
