"""What every test shares: one event loop, and how hard hypothesis tries."""

import os

import pytest
from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow]

settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW_IS_FINE)
# A run that gates a change gives the same verdict each time it is asked.
settings.register_profile(
    "ci", deadline=None, derandomize=True, print_blob=True, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The daemon runs on asyncio alone."""
    return "asyncio"
