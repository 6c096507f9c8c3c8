"""What is drawn, how hard hypothesis tries, and a world without the developer's own settings or hurry.

A plain run draws the same examples every time, in the same order of tests. `--hypothesis-seed` draws others, and
`make test-long` does so with a new seed, a new order and many more examples.
"""

import functools
import os
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadFileScheduling

import postgres_server
from builders import watched

# Modest, so that the whole suite stays quick; the long run raises it.
DEFAULT_EXAMPLES = 50
EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES", DEFAULT_EXAMPLES))
SAME_EVERY_TIME = "same every time"
EXPLORING = "exploring"

for profile in (SAME_EVERY_TIME, EXPLORING):
    settings.register_profile(
        profile,
        max_examples=EXAMPLES,
        derandomize=profile == SAME_EVERY_TIME,
        # Not even an exploration reads examples that an earlier run left behind: its seed says all.
        database=None,
        # A slow machine is not a defect: no test may fail by the clock.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def _fix_constants():
    """Keep hypothesis from drawing constants that it reads in our modules.

    Which modules are loaded, and so what it draws, depends on the tests that ran before.
    """
    none = providers.Constants()
    providers._get_local_constants = lambda: none


_fix_constants()


def pytest_configure(config):
    """Draw the same examples every time, unless a seed is given."""
    settings.load_profile(SAME_EVERY_TIME if config.getoption("hypothesis_seed") is None else EXPLORING)


class ByFile(LoadFileScheduling):
    """Tests of one file run on one worker, so that what they share is made once; so do all that need PostgreSQL.

    This is what `xdist_group` is for, but xdist 3.8 marks tests in a way that pytest 9.2 does not look at.
    """

    def _split_scope(self, nodeid):
        file = super()._split_scope(nodeid)
        return "postgres" if _needs_postgres(self.config.rootpath / file) else file


TAKES_A_SERVER = re.compile(r"^ *def .*[(, ](?:postgres|cluster|(?:own_)?database)[,)]", re.MULTILINE)


@functools.cache
def _needs_postgres(file):
    return TAKES_A_SERVER.search(file.read_text("utf-8")) is not None


def pytest_collection_modifyitems(items):
    """Refuse tests of one id: of those that a file shares out, only one would run."""
    twice = [name for name, number in Counter(item.nodeid for item in items).items() if number > 1]
    if twice:
        raise pytest.UsageError(f"several tests have one id: {', '.join(twice)}")


def pytest_xdist_make_scheduler(config, log):
    """Share tests out by file."""
    return ByFile(config, log)


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    """Say how to repeat an exploration that failed, and aloud that a store was not tested."""
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if "on PostgreSQL" in str(one.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests were skipped: {skipped[0].longrepr[2]}", yellow=True)
    seed = config.getoption("hypothesis_seed")
    if exitstatus and seed is not None:
        order = config.getoption("randomly_seed", None)
        terminalreporter.write_line(
            f"to repeat this: HOLDFAST_EXAMPLES={EXAMPLES} python -m pytest "
            f"--hypothesis-seed={seed} --randomly-seed={order} (and the tests that failed)"
        )


@pytest.fixture(autouse=True, scope="session")
def _no_settings_from_outside(tmp_path_factory):
    """Hide `HOLDFAST_*` and the developer's own settings file; `HOLDFAST_EXAMPLES` too, it is no setting."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_hurry():
    """Stop the watch that measures time budgets: on a busy machine answers are as complete as on an idle one.

    What happens when time runs out is tested with a watch that runs as the test says.
    """
    with watched(lambda: 0.0):
        yield


@pytest.fixture(scope="session")
def postgres():
    """Return the PostgreSQL server of this process; nothing is started before a test asks."""
    server = postgres_server.start_server()
    yield server
    server.close()


@pytest.fixture
def database(postgres):
    """Return the address of an empty store of the test's own."""
    with postgres.database() as address:
        yield address
