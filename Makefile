# Everything sets up what it needs: a virtual environment in .venv with the package built into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST := $(shell find core -name '*.rs' -not -path '*/target/*' -not -path '*/fuzz/*') \
        $(wildcard core/*/Cargo.toml) Cargo.toml Cargo.lock
WORKERS ?= 2
# The build tool lies in the virtual environment too.
PIP := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-rust test-python lint format bench build clean
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' \
	  | awk -F '\t' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(VENV)/.demo ## King James's English into ours: train, tune, test, report (two to three minutes)
	$(BIN)/tunesmith demo

test: test-rust test-python ## Run all tests

test-rust: ## Run the tests of the core
	cargo test --workspace --exclude tunesmith-python --profile tests --quiet

test-python: $(VENV)/.dev ## Run the tests of the package
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

lint: $(VENV)/.dev ## ruff, mypy --strict, rustfmt, clippy -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --release --quiet -- -D warnings

format: $(VENV)/.dev ## Format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	cargo fmt --all

bench: $(VENV)/.bench ## Measure what the README claims (wants ../shared, takes a while)
	$(BIN)/python -m benchmarks

build: $(VENV)/.run ## Build the package into .venv

clean: ## Remove what was built
	rm -rf $(VENV) target python/tunesmith/*.so .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	@echo "== a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

# The package is installed in place, so Python files need no rebuild; the core does.
$(VENV)/.run: $(BIN)/python pyproject.toml $(RUST)
	@echo "== building the package (the first time takes a minute or two)"
	$(PIP) 'maturin>=1.9,<2'
	$(PIP) --no-build-isolation -e .
	@touch $@

# The Bibles are large modules of which two are read: compiling them all would take longer.
$(VENV)/.demo: $(VENV)/.run
	@echo "== what the demo reads"
	$(PIP) --no-compile --no-build-isolation -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "== what the tests and checks need"
	$(PIP) --no-build-isolation -e '.[dev,demo,tensorboard,train,thot]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@echo "== what the benchmarks compare with (kenlm is compiled)"
	$(PIP) --no-build-isolation -e '.[dev,demo,tensorboard,train,thot,bench]'
	@touch $@
