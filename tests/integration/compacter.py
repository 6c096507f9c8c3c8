"""Compacts memories in processes that die at one boundary of a transaction; tests start it.

Each line of its standard input names a file, the BEGIN or COMMIT to die at (counted from 0; -1: none), and `before`
or `after` it. A fork of its own does the work, so that the modules are loaded once; the answer is the fork's exit
status, and how many boundaries it passed and which summaries it made if it lived to say so.
"""

import json
import os
import signal
import sys
from itertools import count

from histories import small_memory


class Dying:
    """A connection that ends the process around one statement."""

    def __init__(self, connection, fatal, moment):
        self._connection = connection
        self._fatal, self._moment = fatal, moment
        self._boundaries = count()
        self.passed = 0

    def execute(self, statement, *given):
        mine = statement in ("COMMIT", "BEGIN IMMEDIATE") and next(self._boundaries) == self._fatal
        self.passed += statement in ("COMMIT", "BEGIN IMMEDIATE")
        if mine and self._moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = self._connection.execute(statement, *given)
        if mine and self._moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def __getattr__(self, name):
        return getattr(self._connection, name)


def compact(path, fatal, moment, answer):
    with small_memory(path) as memory:
        memory.search("boat", user="ana")  # whatever opening has to do is done
        dying = memory.store._database.connection = Dying(memory.store._database.connection, fatal, moment)
        done = memory.compact(user="ana")
        os.write(answer, json.dumps([dying.passed, *(key for one in done for key in one.summaries)]).encode())


for line in sys.stdin:
    path, fatal, moment = json.loads(line)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        compact(path, fatal, moment, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        told = answer.read()
    _, status = os.waitpid(child, 0)
    sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), json.loads(told or "[]")]) + "\n")
    sys.stdout.flush()
