"""Run the tests on a machine that is busy with other things: they must pass there too.

    python scripts/loaded.py [arguments of pytest]

One endless loop per core runs beside them, and the tests give way to it: they get about a tenth of the machine, so a
run takes about ten times as long as usual. The loops end with this program, however it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType

# Linux gives a process of niceness 10 about a tenth of what it gives to one of 0.
NICENESS = 10
# Whoever loses its parent ends by itself, so that not even a kill leaves a loop behind.
LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def main() -> int:
    signal.signal(signal.SIGTERM, _leave)
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(os.cpu_count() or 1)]
    try:
        return subprocess.run(
            [sys.executable, "-m", "pytest", *sys.argv[1:]], preexec_fn=lambda: os.nice(NICENESS), check=False
        ).returncode
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _leave(number: int, _: FrameType | None) -> None:
    """Let a polite request to end pass through `finally`."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
