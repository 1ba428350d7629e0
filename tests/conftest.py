"""What holds for every test: Hypothesis draws the same examples each time, and does not judge speed."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shared-machine", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")
