"""Devices for several claims at once, against every way there is."""

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
from tests.unit.placement.slow_devices import MEMORY, Ask, Thing, Want, fits, options, way_exists

from muster.api.devices import (
    ALL,
    EXACT_COUNT,
    CapacityRequirements,
    DerivedAttribute,
    Device,
    DeviceAttribute,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    Request,
    ResourceClaim,
    ResourceClaimSpec,
)
from muster.cluster.device_pools import DeviceId, Offer
from muster.cluster.devices import NO_DEVICES, DeviceBook, Devices
from muster.placement.device_allocation import (
    FIT,
    TAINTED,
    UNFIT,
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


def test_a_derived_attribute_is_what_its_request_says_of_a_device() -> None:
    """The first device would do for the first request, but is on the other side than the only "b"."""
    offers = offers_of(("a", 1), ("a", 0), ("b", 0))
    side = DerivedAttribute("derived/side", f'device.attributes["{DRIVER}"].pair + 2')
    asked = [
        make_request("p", 1, of_model("a"), derived_attributes=[side]),
        make_request("q", 1, of_model("b"), derived_attributes=[side]),
    ]
    assert find([make_claim("c", *asked, match="derived/side")], offers) == [["gpu-1", "gpu-2"]]
    assert find([make_claim("c", *asked, distinct="derived/side")], offers) == [["gpu-0", "gpu-2"]]
    plain = make_request("q", 1, of_model("b"))
    assert find([make_claim("c", asked[0], plain, match="derived/side")], offers) is None


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


def test_an_admin_leaves_the_free_device_to_who_needs_it() -> None:
    offers = offers_of(("a", 0), ("a", 0))
    claim = make_claim("c", make_request("a", 1, admin_access=True), make_request("p"))
    assert find([claim], offers, frozenset({offers[1].id})) == [["gpu-1", "gpu-0"]]


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

MODELS = ("a", "b")
drawn_things = st.lists(
    st.builds(
        Thing,
        model=st.sampled_from(MODELS),
        pair=st.integers(0, 1),
        counter_set=st.sampled_from([-1, -1, 0, 1]),
        cores=st.integers(1, 2),
        is_shared=st.sampled_from([False, False, True]),
        is_tainted=st.sampled_from([False, False, False, True]),
        homes=st.sampled_from([(0, 1), (0, 1), (0,), (1,)]),
        is_taken=st.sampled_from([False, False, False, True]),
    ),
    max_size=5,
)
drawn_wants = st.builds(
    Want,
    model=st.sampled_from([*MODELS, ""]),
    count=st.sampled_from([1, 1, 2, 2, 0]),
    memory=st.sampled_from([0, 1, 2, MEMORY, MEMORY + 1]),
    tolerates=st.booleans(),
    is_admin=st.sampled_from([False, False, False, True]),
)
drawn_asks = st.lists(
    st.builds(
        Ask,
        requests=st.lists(
            st.lists(drawn_wants, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2
        ).map(tuple),
        rule=st.sampled_from(["", "match", "distinct"]),
        about=st.integers(1, 2),
        homes=st.sampled_from([(0,), (0,), (1,), (0, 1)]),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=500, deadline=None)
@drawn(drawn_things, st.integers(1, 3), drawn_asks)
def test_a_way_is_found_exactly_where_there_is_one(things: list[Thing], cores: int, asks: list[Ask]) -> None:
    """Counters, shares, taints, admins, all, alternatives and devices that two nodes reach, all at once."""
    devices = build_devices(things, cores)
    reaches = [
        Reach(
            [offer for offer in devices.pools.offers if set(ask.homes) <= set(things[_number(offer)].homes)]
        )
        for ask in asks
    ]
    found = allocate(
        [build_claim(f"c{index}", ask) for index, ask in enumerate(asks)],
        reaches,
        Ledger(devices),
        is_eligible,
        Counter(10**6),
    )
    assert (found is not None) == way_exists(things, cores, asks)
    if found is None:
        return
    uses = [tuple((_number(each.offer), _memory(each)) for each in given) for given in found]
    for used, ask in zip(uses, asks, strict=True):
        assert used in set(options(ask, things))
    assert fits([use for used in uses for use in used], things, cores)
    chosen = int(found[0][0].request.partition("/a")[2] or 0)
    if chosen:  # no way with an earlier alternative
        (alternatives, *others), *rest = asks[0].requests, *asks[1:]
        earlier = asks[0]._replace(requests=(alternatives[:chosen], *others))
        assert not way_exists(things, cores, [earlier, *rest])


def build_devices(things: list[Thing], cores: int) -> Devices:
    """A pool that everybody reaches (who reaches what is told apart), and claims that have some of it."""
    book = DeviceBook()
    counters = [make_counters("0", cores=cores), make_counters("1", cores=cores)]
    for each in make_pool(
        "n1", counters, *(build_device(index, thing) for index, thing in enumerate(things))
    ):
        book.apply(each)
    for claim in takers_of(things):
        book.apply(claim)
    return book.freeze()


def takers_of(things: list[Thing]) -> list[ResourceClaim]:
    """Claims that have what is somebody else's."""
    found = []
    for index, thing in enumerate(things):
        if thing.is_taken:
            share = make_share(f"d{index}", "1") if thing.is_shared else allocated(f"d{index}")
            found.append(make_claim(f"x{index}", allocation=share))
    return found


def build_device(index: int, thing: Thing) -> Device:
    device = make_device(f"d{index}", memory=str(MEMORY), model=thing.model, pair=thing.pair)
    part = make_part("x", str(thing.counter_set), cores=thing.cores).consumes_counters
    return msgspec.structs.replace(
        device,
        consumes_counters=part if thing.counter_set >= 0 else None,
        allow_multiple_allocations=thing.is_shared or None,
        taints=[DeviceTaint("broken", "", "NoSchedule")] if thing.is_tainted else None,
    )


def build_claim(name: str, ask: Ask) -> ResourceClaim:
    requests = [_build_request(f"r{number}", wants) for number, wants in enumerate(ask.requests)]
    about = [f"r{number}" for number in range(min(ask.about, len(requests)))]
    words = {f"{ask.rule}_attribute": PAIR} if ask.rule else {}
    constraints = [DeviceConstraint(about, **words)] if words else []
    claim = make_claim(name, *requests)
    devices = msgspec.structs.replace(claim.spec.devices, constraints=constraints)
    return msgspec.structs.replace(claim, spec=ResourceClaimSpec(devices))


def _build_request(name: str, wants: tuple[Want, ...]) -> Request:
    if len(wants) == 1:
        return Request(name, _build_one("", wants[0]))
    return Request(name, None, [_build_one(f"a{number}", want) for number, want in enumerate(wants)])


def _build_one(name: str, want: Want) -> DeviceRequest:
    tolerations = [DeviceToleration("broken", "Exists")] if want.tolerates else None
    wanted = make_request(
        name,
        want.count or 1,
        *([of_model(want.model)] if want.model else []),
        allocation_mode=EXACT_COUNT if want.count else ALL,
        admin_access=want.is_admin,
        tolerations=tolerations,
        capacity=CapacityRequirements({"memory": want.memory}) if want.memory else None,
    ).exactly
    assert wanted is not None
    return msgspec.structs.replace(wanted, name=name)


def _number(offer: Offer) -> int:
    return int(offer.device.name.removeprefix("d"))


def _memory(given: Given) -> int:
    if given.is_admin:
        return 0
    return given.amounts[0].milli // 1000 if given.offer.is_shared else MEMORY


def is_eligible(request: DeviceRequest, offer: Offer) -> int:
    if not eligible(request, offer) or consumption(offer.device, request.capacity) is None:
        return UNFIT
    return FIT if all(tolerates(request, taint) for taint in offer.device.taints or ()) else TAINTED


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
