# Everything here is a cargo command or a termsmith command; what a machine needs is known to `termsmith doctor`.
# CARGO_TARGET_DIR and cargo's own configuration are honoured, since cargo itself runs what it built.

# Tasks that the demo plans.
COUNT ?= 20

# What `make bench` measures, and how it prints: sections, --json, --most N. Everything by default.
ARGS ?=

CARGO ?= cargo
DEMO = out/demo
SEED = 7

# Peers that `make conformance` compares with, where they are installed: the `harbor` command, and a Python with
# tests/readers/requirements.txt.
HARBOR ?= harbor
READERS_PYTHON ?= python3
# Places at which the conformance suite kills a run.
KILLS ?= 30

.PHONY: help demo test conformance gauntlet bench lint fmt tools

help: ## Show this text
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: tools ## Set the machine up, build, and make, solve and export COUNT tasks under out/demo
	@echo "== Building termsmith (release; the first time takes minutes)"
	$(CARGO) build --release --locked
	@echo "== Looking at the machine, and providing what it lacks"
	$(CARGO) run --release --locked --quiet -- doctor --fix
	@echo "== Running the pipeline: $(COUNT) tasks, seed $(SEED)"
	$(CARGO) run --release --locked --quiet -- run --out $(DEMO) --seed $(SEED) --count $(COUNT)

test: tools ## Set the machine up and run all tests
	@echo "== Building termsmith (debug)"
	$(CARGO) build --locked
	@echo "== Looking at the machine, and providing what it lacks"
	$(CARGO) run --locked --quiet -- doctor --fix
	@echo "== Testing"
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  set -x; $(CARGO) nextest run --locked; \
	else \
	  set -x; $(CARGO) test --locked --all-targets; \
	fi
	$(CARGO) test --locked --doc

conformance: demo ## The slow suite: kills at KILLS places, real readers of the Parquet, every demo task under the real Harbor
	@echo "== Killing a run at $(KILLS) places"
	TERMSMITH_TEST_KILLS=$(KILLS) $(CARGO) test --locked --test pipeline killed_anywhere
	@echo "== Reading $(DEMO)/data with pyarrow, DuckDB, pandas and datasets"
	$(READERS_PYTHON) tests/readers/check_parquet.py $(DEMO)/data
	@echo "== Oracle and nop of every task under Harbor"
	tests/readers/check_harbor.sh "$(HARBOR)" $(DEMO)/tasks

gauntlet: tools ## Screen the corpus of planted defects, and one task of every recipe with everything there is
	@echo "== Building termsmith (release; the first time takes minutes)"
	$(CARGO) build --release --locked
	@echo "== Looking at the machine, and providing what it lacks"
	$(CARGO) run --release --locked --quiet -- doctor --fix
	@echo "== Screening the corpus of planted defects"
	$(CARGO) run --release --locked --quiet -- screen --summary --out out/gauntlet tests/gauntlet
	@echo "== Screening a task of every recipe at --rigor full"
	$(CARGO) run --release --locked --quiet -- recipe check --seeds 1 --rigor full --out out/gauntlet-recipes

bench: tools ## Set the machine up and measure speed and memory (ARGS="latency launch --json" for less)
	@echo "== Building termsmith (release; the first time takes minutes)"
	$(CARGO) build --release --locked
	@echo "== Looking at the machine, and providing what it lacks"
	$(CARGO) run --release --locked --quiet -- doctor --fix
	@echo "== Measuring; PEER_HARBOR=COMMAND adds Harbor to the comparison"
	$(CARGO) bench --locked --bench engine -- $(ARGS)

lint: tools ## Check formatting and lints, as CI does
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

fmt: tools ## Format the code
	$(CARGO) fmt

# Rust links with the C compiler's driver, and two dependencies compile C.
tools:
	@command -v $(firstword $(CARGO)) >/dev/null || { echo "cargo is missing: install Rust (rustup) first" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { echo "a C compiler is missing: sudo apt-get install build-essential" >&2; exit 1; }
