"""Claims and volumes of a whole gang, against every assignment there is."""

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.volumes import ClaimKey
from muster.placement.volume_matching import EMPTY, Matching, leave, place

NAMES = ("a", "b", "c", "d")
CLAIMS = [("default", f"c{index}") for index in range(5)]
ROWS = (0, 1, 2)


class Table:
    """Offers written out: (claim, volume) → rows that would do; claim → rows where one can be made."""

    def __init__(
        self, suits: dict[tuple[ClaimKey, str], frozenset[int]], makes: dict[ClaimKey, frozenset[int]]
    ) -> None:
        self.suits = suits
        self.makes = makes

    def volumes_for(self, claim: ClaimKey, rows: frozenset[int]) -> Sequence[str]:
        return [name for name in NAMES if rows <= self.suits.get((claim, name), frozenset())]

    def can_make(self, claim: ClaimKey, rows: frozenset[int]) -> bool:
        return len(rows) == 1 and rows <= self.makes.get(claim, frozenset())


some_rows = st.frozensets(st.sampled_from(ROWS))
tables = st.builds(
    Table,
    st.dictionaries(st.tuples(st.sampled_from(CLAIMS), st.sampled_from(NAMES)), some_rows, max_size=12),
    st.dictionaries(st.sampled_from(CLAIMS), some_rows, max_size=1),
)
uses = st.lists(st.tuples(st.sampled_from(CLAIMS), st.sampled_from(ROWS)), max_size=6)


def exists(table: Table, where: list[tuple[ClaimKey, int]]) -> bool:
    """Try every assignment of volumes, or of one to be made (None), to the claims in use."""
    rows: dict[ClaimKey, frozenset[int]] = {}
    for claim, row in where:
        rows[claim] = rows.get(claim, frozenset()) | {row}
    for chosen in product((None, *NAMES), repeat=len(rows)):
        taken = [name for name in chosen if name is not None]
        pairs = zip(rows, chosen, strict=True)
        if len(set(taken)) == len(taken) and all(
            table.can_make(claim, rows[claim])
            if name is None
            else name in table.volumes_for(claim, rows[claim])
            for claim, name in pairs
        ):
            return True
    return False


def check(matching: Matching, table: Table) -> None:
    for claim, rows in matching.rows_of.items():
        name = matching.volume_of.get(claim)
        if name is None:
            assert table.can_make(claim, frozenset(rows))
        else:
            assert name in table.volumes_for(claim, frozenset(rows))
            assert matching.holder_of[name] == claim
    assert len(matching.holder_of) == len(matching.volume_of)


@given(tables, uses)
def test_a_pod_is_refused_only_where_no_assignment_exists(
    table: Table, where: list[tuple[ClaimKey, int]]
) -> None:
    matching = EMPTY
    placed: list[tuple[ClaimKey, int]] = []
    for claim, row in where:
        found = place(matching, claim, row, table)
        assert (found is not None) == exists(table, [*placed, (claim, row)])
        if found is not None:
            check(found, table)
            matching = found
            placed.append((claim, row))


@given(tables, uses)
def test_who_leaves_gives_its_volume_back(table: Table, where: list[tuple[ClaimKey, int]]) -> None:
    matching = EMPTY
    placed: list[tuple[ClaimKey, int]] = []
    for claim, row in where:
        found = place(matching, claim, row, table)
        if found is not None:
            matching = found
            placed.append((claim, row))
    for claim, row in placed:
        matching = leave(matching, claim, row)
    assert matching == EMPTY


def test_a_holder_moves_on_for_one_that_has_no_other_choice() -> None:
    first, second = CLAIMS[:2]
    everywhere = frozenset(ROWS)
    table = Table({(first, "a"): everywhere, (first, "b"): everywhere, (second, "a"): everywhere}, {})
    one = place(EMPTY, first, 0, table)
    assert one is not None
    assert one.volume_of == {first: "a"}
    both = place(one, second, 1, table)
    assert both is not None
    assert both.volume_of == {first: "b", second: "a"}
    assert one.volume_of == {first: "a"}  # the matching before is as it was
