# Everything sets up what it needs: a virtual environment in .venv with the package built into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST := $(shell find core -name '*.rs' -not -path '*/target/*' -not -path '*/fuzz/*') \
        $(wildcard core/*/Cargo.toml) Cargo.toml Cargo.lock
WORKERS ?= 2
# The build tool lies in the virtual environment too.
PIP := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-rust test-python torture sanitize experiments lint format bench build wheel clean
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

# Reproducible with TORTURE_SEED. EXECUTIONS and FUZZ bound the fuzzing of each target, KILLS the kills
# of each command; with SOAK, the last part runs for so many seconds and must keep its memory flat.
# What was done is left in target/torture/results, from where `python -m benchmarks.docs` takes it.
EXECUTIONS ?= 100000
FUZZ ?= 10
KILLS ?= 20
SOAK ?= 60
TORTURED := target/torture/results
torture: $(VENV)/.dev ## Fuzz, kill, fill disks, race, soak (about half an hour; EXECUTIONS= FUZZ= KILLS= SOAK=)
	@rm -rf $(TORTURED)
	@out=$$(mktemp -d -p $$(test -w /dev/shm && echo /dev/shm || echo /tmp)) \
	  && trap 'rm -rf "$$out"' EXIT && TMPDIR="$$out" cargo run --quiet --profile torture \
	    -p tunesmith-hostile --bin torture -- --executions $(EXECUTIONS) --seconds $(FUZZ) \
	    --seed $${TORTURE_SEED:-1} --threads $(WORKERS) --results $(TORTURED)/readers.json
	TORTURE_KILLS=$(KILLS) TORTURE_FUZZ_SECONDS=$(FUZZ) TORTURE_RESULTS=$(TORTURED) \
	  $(BIN)/python -m pytest -q -s -m torture tests
	TORTURE_RESULTS=$(TORTURED) $(BIN)/python tests/torture/soak.py --seconds $(SOAK)

# Reads and writes outside of what was allocated, and after it was freed, end a program. The compiler
# brings the checker along; RUSTC_BOOTSTRAP lets a stable one use it. The library of C is not checked.
SANITIZED ?= 2000
TARGET := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
ASAN := RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address -Cdebuginfo=line-tables-only' \
        ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1:strict_string_checks=1
ASAN_CARGO := --quiet --profile torture --target $(TARGET) --target-dir target/asan
sanitize: ## The core's tests and some fuzzing under AddressSanitizer (SANITIZED= inputs for each target)
	$(ASAN) PROPTEST_CASES=32 cargo test --workspace --exclude tunesmith-python --tests \
	  --no-fail-fast $(ASAN_CARGO)
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && TMPDIR="$$out" \
	  $(ASAN) cargo run $(ASAN_CARGO) -p tunesmith-hostile --bin torture -- \
	    --executions $(SANITIZED) --seconds 60 --seed $${TORTURE_SEED:-1} --threads $(WORKERS) \
	    --crashes target/torture/asan

# On sample text that needs no data; in a folder of its own, so that nothing is taken from before.
experiments: $(VENV)/.dev ## Run every recipe on sample text (about a minute)
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT \
	  && env -u TUNESMITH_DATA -u TUNESMITH_SHARED \
	    $(BIN)/tunesmith experiment all --scale smoke --out "$$out"

lint: $(VENV)/.dev ## ruff, mypy --strict, stubs, layers, rustfmt, clippy -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest tunesmith._core
	$(BIN)/lint-imports --no-logo
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --release --quiet -- -D warnings \
	  -D clippy::undocumented_unsafe_blocks

format: $(VENV)/.dev ## Format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	cargo fmt --all

bench: $(VENV)/.bench ## Measure what docs/benchmarks.md reports (wants ../shared; MOSES=, MOSES_MERT=, CDEC= run in turn)
	$(BIN)/python -m benchmarks

build: $(VENV)/.run ## Build the package into .venv

# One wheel serves Python 3.11 and later. It is tried where nothing but its own programs is on PATH,
# so no compiler can help it.
wheel: $(BIN)/maturin ## Build a wheel into dist/ and run the demo from it in a clean environment
	rm -f dist/tunesmith-*.whl
	$(BIN)/maturin build --release --quiet --out dist
	@clean=$$(mktemp -d) && trap 'rm -rf "$$clean"' EXIT \
	  && $(PYTHON) -m venv "$$clean/venv" \
	  && "$$clean/venv/bin/python" -m pip install --quiet --disable-pip-version-check dist/tunesmith-*.whl \
	  && cd "$$clean" && PYTHONPATH= PATH="$$clean/venv/bin" tunesmith demo --lists --out demo
	@ls -l dist/tunesmith-*.whl

clean: ## Remove what was built
	rm -rf $(VENV) target dist python/tunesmith/*.so .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	@echo "== a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

$(BIN)/maturin: $(BIN)/python
	$(PIP) 'maturin>=1.9,<2'
	@touch $@

# The package is installed in place, so Python files need no rebuild; the core does. What is never
# imported need not be compiled: that would take longer than the rest of the installation.
$(VENV)/.demo: EXTRAS := [demo]
$(VENV)/.dev: EXTRAS := [dev,demo,ray,serve,tensorboard,train,thot]
$(VENV)/.bench: EXTRAS := [dev,demo,ray,serve,tensorboard,train,thot,bench]
# KenLM's package is built with these, and nothing brings them along where builds are not isolated.
$(VENV)/.bench: TOOLS := setuptools wheel

$(VENV)/.run $(VENV)/.demo $(VENV)/.dev $(VENV)/.bench: $(BIN)/python pyproject.toml $(RUST)
	@echo "== building the package (the first time takes about two minutes) $(EXTRAS)"
	$(PIP) 'maturin>=1.9,<2' $(TOOLS)
	$(PIP) --no-compile --no-build-isolation -e '.$(EXTRAS)'
	@touch $@
