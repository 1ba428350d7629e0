"""What starters of clusters share."""

from tests.conformance.forms import find_free_port


def test_two_starters_never_get_the_same_ports_though_neither_listens_yet() -> None:
    ports = [find_free_port((0, 1, 11)) for _ in range(3)]
    taken = [port + offset for port in ports for offset in range(20)]
    assert len(set(taken)) == 60
