"""A real server on loopback for tests: one memory behind a port or a socket file, stopped and started at will."""

import threading

import uvicorn

from holdfast.doors.limits import ServerSettings
from holdfast.doors.server import Door


class Serving:
    """Serves `memory` from a thread; the port stays the same when it is started again."""

    def __init__(self, memory, how=None, *, file=None, app=None):
        self._memory, self._how, self._file = memory, how or ServerSettings(), file
        self._make = app or (lambda: Door(self._memory, self._how).app)
        self._port = 0
        self._server, self._thread = None, None

    @property
    def address(self):
        return f"unix:{self._file}" if self._file else f"http://127.0.0.1:{self._port}"

    def start(self):
        place = {"uds": str(self._file)} if self._file else {"host": "127.0.0.1", "port": self._port}
        config = uvicorn.Config(self._make(), **place, log_config=None, access_log=False, ws="none", lifespan="on")
        started = threading.Event()

        class Announced(uvicorn.Server):
            async def startup(self, sockets=None):
                await super().startup(sockets)
                started.set()

        self._server = Announced(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        started.wait()
        if not self._file:
            self._port = self._server.servers[0].sockets[0].getsockname()[1]
        return self

    def stop(self):
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self):
        return self if self._thread is not None and self._thread.is_alive() else self.start()

    def __exit__(self, *_):
        if self._thread.is_alive():
            self.stop()
