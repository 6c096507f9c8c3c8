"""Where data lies, and who may read it: what a run writes is in the guide, and nothing else is written."""

import re
import stat
import subprocess
import sys
from pathlib import Path

from builders import PATIENT

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "removing.md"
# The shipped models are loaded: a library that they need may write, too.
RUN = """
from holdfast import Memory
from holdfast.cli.main import app
import sys
memory = Memory.open("holdfast.db")
memory.remember([f"the copper kettle {n}" for n in range(4)], user="me")
memory.search("Where is the kettle?", user="me", read="once")
for command in (["search", "kettle"], ["token", "add", "laptop", "--tenant", "local"], ["backup", "copy.db"]):
    app(command, prog_name="holdfast", standalone_mode=False)
during = sorted(path.name for path in __import__("pathlib").Path().iterdir())
memory.close()
print(during, file=sys.stderr)
"""


def test_all_that_is_written_is_named_by_the_guide_and_for_its_owner_alone(tmp_path):
    home, here, temporary = tmp_path / "home", tmp_path / "here", tmp_path / "temporary"
    for folder in (home, here, temporary):
        folder.mkdir()
    environment = PATIENT | {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    of_store = {"holdfast.db", "holdfast.db.tokens", "holdfast.db.tokens.lock"}
    assert left == {f"here/{name}" for name in (*of_store, "copy.db")}
    assert all(stat.S_IMODE((here / name).stat().st_mode) == 0o600 for name in (*of_store, "copy.db"))
    during = set(re.findall(r"'(holdfast\.db[^']*)'", done.stderr.splitlines()[-1]))
    page = GUIDE.read_text(encoding="utf-8")
    for name in during | of_store:
        assert name.replace("holdfast.db", "`FILE") + "`" in page, name
