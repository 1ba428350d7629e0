"""What is remembered of gangs, and when each is looked at."""

from muster.framework.groups import ObjectKey
from muster.scheduling.gangs import Gang, Gangs
from muster.scheduling.members import group_entity

A, B = group_entity(ObjectKey("d", "a")), group_entity(ObjectKey("d", "b"))


def test_the_backoff_after_a_release_doubles_up_to_ten_minutes() -> None:
    gang, waits = Gang(), []
    for now_s in range(8):
        gang.release(now_s)
        waits.append(gang.backoff_s)
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600]
    gang.releases = 5000
    assert gang.backoff_s == 600


def test_releases_are_written_so_that_they_can_be_read() -> None:
    gang, next_one = Gang(), Gang()
    assert gang.write_releases(with_time=True) == ""
    gang.releases, gang.not_before_s = 7, 1_800_000_060.0
    text = f"3 created; {gang.write_releases(with_time=True)}; the last because of that"
    assert (next_one.read_releases(text), next_one.releases) == (1_800_000_060.0, 7)
    assert (next_one.read_releases(gang.write_releases(with_time=False)), next_one.releases) == (0.0, 7)
    assert (Gang().read_releases("3 created"), Gang().read_releases("releases in a row: x")) == (0.0, 0.0)


def test_ten_minutes_of_running_make_up_for_earlier_releases() -> None:
    gang = Gang()
    gang.release(0.0)
    gang.started_s = 100.0
    gang.release(600.0)
    assert gang.backoff_s == 20
    gang.started_s = 1000.0
    gang.release(1601.0)
    assert gang.backoff_s == 10


def test_what_is_under_way_stays_so_since_its_first_decision() -> None:
    gangs = Gangs()
    gangs.begin(A, 300.0, 10.0)
    gangs.begin(A, 300.0, 50.0)
    assert gangs.next_due_s() == 310.0
    assert (gangs.tick(309.0), gangs.tick(310.0), gangs.tick(311.0)) == ([], [A], [])


def test_a_count_that_is_due_is_not_put_off() -> None:
    gangs = Gangs()
    gangs.count_at(A, 5.0)
    gangs.count_at(A, 30.0)
    gangs.count_at(B, 7.0)
    assert gangs.tick_counts(7.0) == [A, B]


def test_a_gang_that_is_gone_is_looked_at_no_more() -> None:
    gangs = Gangs()
    gangs.begin(A, 300.0, 0.0)
    gangs.count_at(A, 5.0)
    gangs.note_counted(A, 1.0)
    gangs.lose(A)
    assert (gangs.find(A), gangs.next_due_s(), gangs.counted_s(A)) == (None, None, 0.0)
