# diag: from a fresh checkout to a report, the tests and the checks. `make` alone lists the targets.

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= auto
TESTS  ?=

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet install
PYTEST := $(BIN)/pytest -n $(JOBS) --maxprocesses 8 --durations 40
BUILD  := build

# Empty files that say what is installed: a second `make` installs nothing and needs no network.
CORE   := $(VENV)/.diag-core
DEV    := $(VENV)/.diag-dev
PROBES := $(VENV)/.diag-probes

# Tests that run rules and readers in their own process.
COVERING := $(addprefix tests/,compare ingest launches model plugins ranks rules serving timeline) tests/test_docstrings.py

DEMO_TRACE := examples/data/slow-loader.pt.trace.json.gz
LIVE_TRACE := $(BUILD)/slow-loader.pt.trace.json.gz

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-live install dev test test-all coverage mutants truth lint format docs site bench dist clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=…     the Python (3.11 or newer) to make $(VENV) with (default: $(PYTHON))"
	@echo "  JOBS=…       test processes (default: $(JOBS))"
	@echo "  TESTS=…      the tests to run (default: all)"

demo: $(CORE) ## Install diag in .venv and report on a trace that comes with it
	$(BIN)/diag report $(DEMO_TRACE)

demo-live: $(CORE) $(PROBES) ## Install PyTorch too, measure this CPU and its probes, and diagnose a slow program
	@mkdir -p $(BUILD)
	$(BIN)/diag calibrate --device cpu --quick || echo "The probes do without ceilings."
	$(BIN)/diag probe run all --device cpu
	$(BIN)/python examples/slow_loader.py $(LIVE_TRACE)
	$(BIN)/diag report $(LIVE_TRACE)

install: $(CORE) ## Install diag in .venv
dev: $(DEV) ## Install diag and the tools to work on it in .venv

test: $(DEV) $(PROBES) ## Run the tests, without the slow ones
	$(PYTEST) -m "not slow" $(TESTS)

test-all: $(DEV) $(PROBES) ## Run all tests
	$(PYTEST) $(TESTS)

coverage: $(DEV) $(PROBES) ## Measure which lines of rules and readers the tests run; fails under 90 %
	rm -rf $(BUILD)/coverage
	@mkdir -p $(BUILD)/coverage
	$(BIN)/python -m coverage run -m pytest -n0 -q -m "not slow" $(or $(TESTS),$(COVERING))
	$(BIN)/python -m coverage report --fail-under=90 --sort=cover

mutants: $(BUILD)/coverage/data ## Change N=… places of the arithmetic at random (SEED=…): a test must notice each
	$(BIN)/python -m tests.mutation $(or $(N),150) $(or $(SEED),1)

$(BUILD)/coverage/data:
	$(MAKE) coverage

truth: $(DEV) $(PROBES) ## Capture and build runs with known faults, score the rules, write docs/truth.md (SEED=…)
	$(BIN)/python -m tests.truth docs/truth.md $(if $(SEED),--seed $(SEED))

lint: $(DEV) ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(DEV) ## Format the code and fix what can be fixed without thought
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## Write docs/rules from the rules, the schemas of JSON, docs/rule-cases.md from their tests, docs/validation.md from real reports
	$(BIN)/python -m diag.render.rule_pages docs/rules
	$(BIN)/python -m diag.render.contract.schema diag/render/schemas
	$(BIN)/python -m tests.rules.case_table docs/rule-cases.md
	$(BIN)/python -m tests.model.hardware_page docs/hardware.md
	$(BIN)/python -m diag.learn.published docs/learn
	$(BIN)/python -m tests.third_party THIRD-PARTY.md
	$(if $(DIAG_REAL_REPORTS),$(BIN)/python -m tests.validation.page docs/validation.md)
	$(if $(DIAG_REAL_REPORTS),$(BIN)/python -m tests.validation.vendor_rules docs/nvidia-rules.md)

site: $(DEV) ## Build the documentation as a site in build/site; no network is needed to read it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

bench: $(DEV) ## Run the benchmarks of tests/bench
	$(if $(wildcard tests/bench/bench_*.py), \
		$(BIN)/pytest -o python_files='bench_*.py' --capture=no tests/bench, \
		@echo "There are no benchmarks (tests/bench/bench_*.py) yet.")

dist: $(DEV) ## Build the sdist and, from it, the wheel in dist/
	$(BIN)/python -m build

clean: ## Remove what the tools left behind, not .venv
	rm -rf $(BUILD) dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv too
	rm -rf $(VENV)

# pip is what the venv module installs last: a folder without it is half made.
$(BIN)/pip:
	@$(PYTHON) -c 'pass' 2>/dev/null || { \
		echo "$(PYTHON) is missing. Install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "diag needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1 | cut -d " " -f 2)." \
		     "Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		package=python$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv; \
		echo "$(PYTHON) cannot make virtual environments: its venv module or pip is missing." \
		     "On Debian and Ubuntu: sudo apt install python3-venv (or $$package)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# diag/__init__.py holds the version that the installation records.
$(CORE): pyproject.toml diag/__init__.py | $(BIN)/pip
	$(PIP) --editable .
	@touch $@

$(DEV): pyproject.toml constraints.txt diag/__init__.py | $(BIN)/pip
	$(PIP) --editable '.[dev]' --constraint constraints.txt
	@touch $@ $(CORE)

$(PROBES): pyproject.toml constraints.txt diag/__init__.py | $(BIN)/pip
	$(PIP) --editable '.[probes]' --constraint constraints.txt
	@touch $@ $(CORE)
