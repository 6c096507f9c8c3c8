"""Copy one store into another, and wait for a word after every batch: `test_migrate` kills it then."""

import sys

from holdfast import Settings
from holdfast.openers import derivation, open_store
from holdfast.store import copying


def say_and_wait(step, done, of):
    sys.stdout.write(f"{step} {done} {of}\n")
    sys.stdout.flush()
    sys.stdin.readline()


settings = Settings()
one = open_store(sys.argv[1], settings.store, derivation(settings))
other = open_store(sys.argv[2], settings.store, derivation(settings), mending=True)
copying._TOGETHER = 100
copying.copy_store(one, other, say_and_wait)
