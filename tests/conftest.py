"""How hard hypothesis tries, and a world without the developer's own settings.

`HOLDFAST_EXAMPLES=1000 make test` tries harder; with `CI` in the environment every run draws the same examples.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

# Modest, so that the whole suite stays quick; the long run raises it.
DEFAULT_EXAMPLES = 50

settings.register_profile(
    "holdfast",
    max_examples=int(os.environ.get("HOLDFAST_EXAMPLES", DEFAULT_EXAMPLES)),
    derandomize="CI" in os.environ,
    # A slow machine is not a defect: no test may fail by the clock.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("holdfast")


@pytest.fixture(autouse=True, scope="session")
def _no_settings_from_outside(tmp_path_factory):
    """Hide `HOLDFAST_*` and the developer's own settings file; `HOLDFAST_EXAMPLES` too, it is no setting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
            patch.delenv(name)
        yield
