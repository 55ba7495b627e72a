# Every target sets up what it needs in .venv first; after the first time that costs nothing.
#
#   make demo       a long session compacted again and again, without a key or a network
#   make test       style, types, import layers, and tests of every promise and every way in
#   make test-all   that, and all other tests
#   make test-fast  that of `make test` which takes two minutes, while you work
#   make lint       style and import layers         make types   strict type check
#   make bench      measurements, as ratios         make bench-full   all of them, some take an hour
#   make docs       rewrite the generated parts of docs/
#   make fuzz       property tests, many examples   make soak    crash and load campaigns, long

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

VENV := .venv
BIN := $(VENV)/bin
# What the demo shows, and what it says to try next: chat, gateway and dashboard.
DEMO_EXTRAS := chat,gateway
EXTRAS := chat,openai,anthropic,gateway,postgres,mcp,vectors,dev
# Whoever has the whole environment needs no second one for the demo.
DEMO_READY := $(or $(wildcard $(VENV)/.ready),$(VENV)/.demo)
# Two workers: a file of tests stays with one of them, which shares its servers among its tests.
# In our own order (tests/conftest.py): by number of tests, the few slow ones would all come last, on one worker.
PYTEST := $(BIN)/python -m pytest -q --numprocesses=2 --dist=loadfile --no-loadscope-reorder

# Tests start the program hundreds of times; it should be compiled once.
export PYTHONDONTWRITEBYTECODE :=

# $(call install,EXTRAS): quiet, unless it fails.
define install
	@test -n "$(PYTHON)" || { echo "Leporello needs Python 3.11 or newer, and found none." \
	  "Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	@mkdir -p $(VENV)
	@{ $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[$(1)]'; } > $(VENV)/setup.log 2>&1 || { cat $(VENV)/setup.log >&2; exit 1; }
	@touch $@
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-extended test-fast lint types bench bench-full docs fuzz soak clean

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) for development (once; some minutes, 800 MB)"
	$(call install,$(EXTRAS))

$(VENV)/.demo: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once; a minute, 160 MB)"
	$(call install,$(DEMO_EXTRAS))

demo: $(DEMO_READY)
	@$(BIN)/python -m leporello.testing.demo

# Tests of the dashboard drive a real browser; without one they are skipped, which is said here and in their report.
test: lint types
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null || \
	  echo "Chromium is missing, so the dashboard's tests are skipped. Debian, Ubuntu: apt-get install chromium" >&2
	@HYPOTHESIS_PROFILE=ci $(PYTEST) -m "not extended and not soak"

# What `make test` leaves out (tests/tiers.py says what that is).
test-extended: setup
	@HYPOTHESIS_PROFILE=ci $(PYTEST) -m "extended and not soak"

test-all: test test-extended

test-fast: lint types
	@HYPOTHESIS_PROFILE=fast $(PYTEST) -m "not slow and not extended and not soak"

lint: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "Run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/lint-imports --no-cache > $(VENV)/layers.txt || { cat $(VENV)/layers.txt >&2; exit 1; }

types: setup
	@$(BIN)/mypy --no-error-summary

bench: setup
	@$(BIN)/python -m benchmarks

bench-full: setup
	@$(BIN)/python -m benchmarks --full

docs: setup
	@$(BIN)/python scripts/docs.py

fuzz: setup
	@HYPOTHESIS_PROFILE=fuzz $(PYTEST) --timeout=0 -m "hypothesis and not soak"

soak: setup
	@$(PYTEST) --timeout=0 -m soak

clean:
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
