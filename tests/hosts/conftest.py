"""Tests with real hosts: they run when `make test-hosts` says where the hosts are installed."""

import os

collect_ignore_glob = [] if "HOLDFAST_HOSTS" in os.environ else ["test_*"]
