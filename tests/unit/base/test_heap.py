"""The heap agrees with a sorted list, whatever is put, replaced and removed."""

from hypothesis import given
from hypothesis import strategies as st

from muster.base.heap import STALE_MIN, KeyedHeap

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 5), st.integers(0, 3)),
        st.tuples(st.just("remove"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.just(0)),
    )
)


@given(OPERATIONS)
def test_it_gives_keys_in_order_of_rank_then_of_insertion(operations: list[tuple[str, int, int]]) -> None:
    heap: KeyedHeap[int] = KeyedHeap()
    model: list[tuple[int, int]] = []  # (rank, key) in order of insertion
    for operation, key, rank in operations:
        if operation == "put":
            if (rank, key) not in model:
                model = [entry for entry in model if entry[1] != key] + [(rank, key)]
            heap.put(key, (rank,))
        elif operation == "remove":
            assert heap.remove(key) == any(entry[1] == key for entry in model)
            model = [entry for entry in model if entry[1] != key]
        else:
            first = min(model, key=lambda entry: entry[0], default=None)
            assert heap.pop() == (first[1] if first else None)
            model = [entry for entry in model if entry is not first]
        assert len(heap) == len(model)
        assert list(heap) == [entry[1] for entry in sorted(model, key=lambda entry: entry[0])]


def test_the_same_rank_again_keeps_the_turn() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("a", (1.0,))
    heap.put("b", (1.0,))
    heap.put("a", (1.0,))
    assert heap.pop() == "a"


def test_peek_leaves_the_first_in_place() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    assert heap.peek() is None
    heap.put("a", (2.0,))
    assert heap.peek() == ("a", (2.0,))
    assert heap.find_rank("a") == (2.0,)
    assert "a" in heap


def test_those_whose_time_has_come_are_taken_and_those_put_in_meanwhile_too() -> None:
    heap = KeyedHeap[str]()
    assert heap.next_due_s() is None
    for key, at_s in (("late", 9.0), ("b", 2.0), ("a", 1.0), ("gone", 1.5)):
        heap.put(key, (at_s,))
    heap.remove("gone")
    assert heap.next_due_s() == 1.0
    taken = []
    for key in heap.take_due(3.0):
        taken.append(key)
        if key == "a":
            heap.put("again", (3.0,))
    assert taken == ["a", "b", "again"]
    assert list(heap) == ["late"]


def test_what_came_and_went_behind_an_old_key_takes_no_memory() -> None:
    heap: KeyedHeap[int] = KeyedHeap()
    heap.put(-1, (0.0,))
    for key in range(10 * STALE_MIN):
        heap.put(key, (1.0,))
        heap.remove(key)
    assert list(heap) == [-1]
    assert len(heap._heap) <= STALE_MIN + 2
