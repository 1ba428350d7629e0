"""Who has which devices, against counting all claims anew."""

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.device_takings import Share, Takings

Key = tuple[str, str]
Device = tuple[str, str, str]
KEYS = [("default", name) for name in "abc"]
DEVICES = [("driver", "pool", name) for name in "xyz"]

drawn_given = st.lists(
    st.tuples(
        st.sampled_from(DEVICES), st.sampled_from([None, {"memory": 2}, {"memory": 3, "lanes": 1}, {}])
    ),
    max_size=3,
)


def count_anew(
    claims: dict[Key, list[tuple[Device, Share | None]]],
) -> tuple[dict[Device, tuple[Key, ...]], dict[Device, dict[str, int]]]:
    """The same, slowly."""
    taken: dict[Device, tuple[Key, ...]] = {}
    shares: dict[Device, dict[str, int]] = {}
    whole: set[Device] = set()
    for key in sorted(claims):
        for device, share in claims[key]:
            taken[device] = (*taken.get(device, ()), key)
            if share is None:
                whole.add(device)
                continue
            known = shares.setdefault(device, {})
            for name, amount in share.items():
                known[name] = known.get(name, 0) + amount
    return taken, {device: share for device, share in shares.items() if device not in whole}


@given(st.lists(st.tuples(st.sampled_from(KEYS), drawn_given), max_size=8))
def test_what_claims_have_is_counted_as_they_change(
    changes: list[tuple[Key, list[tuple[Device, Share | None]]]],
) -> None:
    takings, claims = Takings(), dict[Key, list[tuple[Device, Share | None]]]()
    for key, given_now in changes:
        takings.put(key, given_now)
        claims[key] = given_now
        assert takings.picture() == count_anew(claims)


def test_a_picture_stays_as_it_was() -> None:
    takings = Takings()
    takings.put(KEYS[0], [(DEVICES[0], None)])
    taken, _ = takings.picture()
    takings.put(KEYS[0], ())
    assert taken == {DEVICES[0]: (KEYS[0],)}
    assert takings.picture() == ({}, {})
