"""Chances are drawn from the seed, and dice are thrown only where something can happen."""

from tests.unit.sim.storm.stage import generator

from muster.sim.storm.weather import CALM, Sky, Weather


def test_equal_seeds_draw_equal_weather() -> None:
    assert Weather.draw(generator(5)) == Weather.draw(generator(5))
    assert Weather.draw(generator(5)) != Weather.draw(generator(6))


def test_what_cannot_happen_draws_nothing() -> None:
    dice, same = generator(), generator()
    sky = Sky(CALM, dice)
    assert not sky.strikes(0.0)
    assert sky.pick((("a", 0.0), ("b", 0.0))) == ""
    assert dice.random() == same.random()


def test_of_faults_that_exclude_each_other_one_strikes() -> None:
    sky = Sky(CALM, generator())
    picks = {sky.pick((("a", 0.5), ("b", 0.5))) for _ in range(50)}
    assert picks == {"a", "b"}


def test_a_clear_sky_has_no_faults() -> None:
    sky = Sky(Weather(unsent=1.0), generator())
    sky.clear()
    assert sky.weather == CALM
