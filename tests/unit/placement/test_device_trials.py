"""What members of a gang get between them while they are placed one by one."""

from hypothesis import assume, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    DRIVER,
    make_claim,
    make_class,
    make_counters,
    make_device,
    make_part,
    make_pool,
    make_request,
    make_slice,
)
from tests.unit.placement.slow_devices import Ask, Thing, way_exists
from tests.unit.placement.test_device_allocation import (
    build_claim,
    build_device,
    drawn_asks,
    drawn_things,
    takers_of,
)
from tests.unit.placement.test_device_offers import ZONE_A, C, D, offers_with

from muster.cluster.devices import ClaimKey
from muster.placement.device_offers import DeviceOffers
from muster.placement.device_trials import NOTHING, Trial, add, leave


def added(trial: Trial, claims: list[ClaimKey], row: int, offers: DeviceOffers) -> Trial:
    found = add(trial, claims, row, offers)
    assert found is not None
    return found


def names(trial: Trial) -> dict[ClaimKey, list[str]]:
    return {claim: [each.offer.device.name for each in given] for claim, given in trial.given.items()}


def test_a_second_claim_may_make_the_first_change_its_device() -> None:
    special = make_claim("d", make_request("r", 1, f'device.attributes["{DRIVER}"].model == "a"'))
    devices = (make_device("a", model="a"), make_device("b", model="b"))
    offers = offers_with(make_class(), make_claim("c"), special, make_slice("n1", *devices))
    first = added(NOTHING, [C], 0, offers)
    assert names(first)[C] == ["a"]
    both = added(first, [D], 0, offers)
    assert names(both)[C] == ["b"]
    assert leave(both, [D], 0).given.keys() == {C}


def test_a_device_for_many_nodes_is_given_once() -> None:
    offers = offers_with(
        make_class(), make_claim("c"), make_claim("d"), make_slice("all", make_device("far"), all_nodes=True)
    )
    first = added(NOTHING, [C], 0, offers)
    assert add(first, [D], 1, offers) is None


def test_who_shares_a_claim_must_reach_what_it_got() -> None:
    slices = (make_slice("n1", make_device("a")), make_slice("n2", make_device("b")))
    offers = offers_with(make_class(), make_claim("c"), *slices)
    first = added(NOTHING, [C], 0, offers)
    assert add(first, [C], 1, offers) is None
    assert add(first, [C], 0, offers) is not None


def test_who_is_placed_later_may_make_others_change_what_many_nodes_reach() -> None:
    """The first takes what only the second can reach, and there is another for it."""
    slices = (
        make_slice("all", make_device("far"), all_nodes=True),
        make_slice("zone", make_device("near"), node_selector=ZONE_A),
    )
    offers = offers_with(make_class(), make_claim("c"), make_claim("d"), *slices)
    first = added(NOTHING, [C], 0, offers)
    assert names(first)[C] == ["far"]
    both = added(first, [D], 1, offers)
    assert names(both) == {C: ["near"], D: ["far"]}


def test_who_shares_a_claim_on_another_node_moves_it_to_what_both_reach() -> None:
    slices = (make_slice("n1", make_device("own")), make_slice("z", make_device("far"), all_nodes=True))
    offers = offers_with(make_class(), make_claim("c"), make_claim("d"), *slices)
    first = added(NOTHING, [C], 0, offers)
    assert names(first)[C] == ["own"]
    both = added(first, [C], 1, offers)
    assert names(both)[C] == ["far"]
    assert add(both, [D], 1, offers) is None
    beside = added(both, [D], 0, offers)
    assert names(beside)[C] == ["far"]


def test_a_shared_claim_stays_until_the_last_of_its_pods_leaves() -> None:
    offers = offers_with(make_class(), make_claim("c"), make_slice("n1", make_device("a")))
    first = added(NOTHING, [C], 0, offers)
    both = added(first, [C], 0, offers)
    one = leave(both, [C], 0)
    assert one.given.keys() == {C}
    assert leave(one, [C], 0).given == {}


def test_counters_that_nodes_share_are_spent_once() -> None:
    parts = [make_part("a", memory="30Gi"), make_part("b", memory="30Gi")]
    pool = make_pool("fabric", [make_counters(memory="40Gi")], *parts, all_nodes=True)
    offers = offers_with(make_class(), make_claim("c"), make_claim("d"), *pool)
    first = added(NOTHING, [C], 0, offers)
    assert add(first, [D], 1, offers) is None


@settings(max_examples=300, deadline=None)
@drawn(drawn_things, st.integers(1, 3), drawn_asks)
def test_members_on_two_nodes_get_devices_exactly_where_there_is_a_way(
    things: list[Thing], cores: int, asks: list[Ask]
) -> None:
    """Who comes later may make all before change theirs, on the other node as well."""
    assume(not any(len(ask.homes) > 1 and _asks_for_all(ask) for ask in asks))
    claims = [build_claim(f"c{index}", ask) for index, ask in enumerate(asks)]
    devices = [replace(build_device(index, thing), **_where(thing)) for index, thing in enumerate(things)]
    counters = [make_counters("0", cores=cores), make_counters("1", cores=cores)]
    pool = make_pool("n1", counters, *devices, per_device_node_selection=True)
    offers = offers_with(make_class(), *claims, *takers_of(things), *pool)
    trial: Trial | None = NOTHING
    for index, ask in enumerate(asks):
        for home in ask.homes:
            trial = add(trial, [("default", f"c{index}")], home, offers) if trial is not None else None
    assert (trial is not None) == way_exists(things, cores, asks)


def _asks_for_all(ask: Ask) -> bool:
    """What "all" is depends on the node where the first pod goes."""
    return any(want.count == 0 for wants in ask.requests for want in wants)


def _where(thing: Thing) -> dict[str, object]:
    return {"all_nodes": True} if len(thing.homes) > 1 else {"node_name": f"n{thing.homes[0] + 1}"}
