"""How far a long command has come: where nobody sees a bar, a line now and then. The test is the clock."""

import io

import pytest

from holdfast.cli.output import ProgressReport, Screen


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def told(clock, steps, *, terminal=False, quiet=False):
    """Return what is printed when so much is done (of how much) after so many seconds."""
    screen = Screen(file=io.StringIO(), get_time=clock, force_terminal=terminal, width=100)
    with ProgressReport(screen, "importing", quiet=quiet) as report:
        for seconds, done, of in steps:
            clock.now = 100.0 + seconds
            report(done, of)
    return screen.file.getvalue()


def test_a_log_gets_a_line_every_ten_seconds_with_an_estimate(clock):
    lines = told(clock, [(second, second, 100) for second in range(101)]).splitlines()
    assert len(lines) == 10
    assert lines[0] == "importing: 10%, about 90 s left"
    assert lines[4] == "importing: 50%, about 50 s left"
    assert lines[-1] == "importing: 100%, about 0 s left"


def test_a_long_wait_is_told_in_minutes(clock):
    assert told(clock, [(60, 1, 11)]) == "importing: 9%, about 10 min left\n"


def test_before_anything_is_done_there_is_no_estimate(clock):
    assert told(clock, [(30, 0, 100), (31, 0, 0)]) == "importing: 0%\n"


def test_a_quick_command_says_nothing(clock):
    assert told(clock, [(second / 2, second, 10) for second in range(11)]) == ""


@pytest.mark.parametrize("terminal", [False, True])
def test_a_program_is_told_nothing(clock, terminal):
    assert told(clock, [(60, 1, 2)], terminal=terminal, quiet=True) == ""


def test_a_terminal_gets_a_bar_that_moves(clock):
    shown = told(clock, [(1, 1, 4), (2, 2, 4), (3, 3, 4)], terminal=True)
    assert "importing" in shown
    assert "75%" in shown
