"""Room on nodes, against adding up anew each time."""

from hypothesis import given
from hypothesis import strategies as st

from muster.controllers.node_room import NodeRooms

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 5), max_size=2)
STEPS = st.lists(
    st.tuples(st.sampled_from(["n1", "n2", "gone"]), st.sampled_from(["a", "b", "c"]), AMOUNTS), max_size=20
)


@given(STEPS)
def test_what_is_used_is_the_sum_of_what_is_held(steps: list[tuple[str, str, dict[str, int]]]) -> None:
    rooms = NodeRooms()
    held: dict[str, tuple[str, dict[str, int]]] = {}
    for node_name, uid, amounts in steps:
        if node_name == "gone":
            rooms.release(uid)
            held.pop(uid, None)
        else:
            rooms.take(node_name, uid, amounts)
            held[uid] = (node_name, amounts)
        for name in ("n1", "n2"):
            for resource in ("cpu", "memory"):
                expected = sum(amounts.get(resource, 0) for where, amounts in held.values() if where == name)
                assert rooms.used(name).get(resource, 0) == expected


def test_nothing_is_left_when_all_are_released() -> None:
    rooms = NodeRooms()
    rooms.take("n1", "a", {"cpu": 0, "memory": 3})
    rooms.release("a")
    assert rooms.used("n1") == {}
    assert len(rooms) == 0
