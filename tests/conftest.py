"""What holds for every test: Hypothesis does not judge speed, for the machines that run this are shared."""

from hypothesis import HealthCheck, settings

settings.register_profile("shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-machine")
