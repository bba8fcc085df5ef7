# Each target is a few cargo and termsmith commands. `termsmith doctor --fix` installs what the machine
# lacks. Cargo runs what it built, so CARGO_TARGET_DIR and cargo's own configuration are respected.

# Number of tasks in the demo. 13 are one for each recipe, and take three times as long.
COUNT ?= 5

# Arguments of `make bench`: sections to measure (default: all), --json, --most N.
ARGS ?=

CARGO ?= cargo

# The nextest profile of `make test` (.config/nextest.toml).
PROFILE ?= default
DEMO = out/demo
SEED = 7

# Tasks of `make demo-model`, by their index in the recorded plan of twelve. All twelve if none is named.
# One task takes 10 to 30 minutes.
MODEL_TASKS ?=

# Other tools for `make conformance`: the `harbor` command, and a Python with the packages in
# tests/readers/requirements.txt and the chat templates of TRL (`pip install --no-deps trl==1.16.0`).
HARBOR ?= harbor
READERS_PYTHON ?= python3
# Points at which the conformance suite kills a run.
KILLS ?= 30
# Tasks that are attacked in Harbor's separate mode. 13 are one for each recipe.
SEPARATE ?= 13
# Tasks that are attacked in the real Harbor.
ATTACKED ?= 2
# Agents that `make conformance-agents` runs, each on three demo tasks, and its modes
# (tests/agents/run.py).
AGENTS ?= claude-code,codex,opencode,mini-swe-agent,openhands,aider,qwen-code
MODES ?= plain,sub,killed
# A Python that can import `harbor`, for its validator of ATIF documents.
HARBOR_PYTHON ?=
# Rollouts of each of four tasks while containers are killed.
ATTEMPTS ?= 50

# The path of the binary, from cargo's messages. It depends on CARGO_TARGET_DIR and on cargo's own
# configuration.
executable = sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'

# Runs a build and prints the elapsed time every 8 s, since cargo prints nothing while it compiles the last
# crate. The loop ends with its shell ($$$$), even if the shell is killed.
define build
	@echo "+ $(1)"; \
	( elapsed=0; while sleep 8 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do \
	    elapsed=$$((elapsed + 8)); echo "   … building, $$elapsed s so far" >&2; done ) & \
	beat=$$!; $(1); status=$$?; kill $$beat 2>/dev/null; exit $$status
endef

.PHONY: help demo demo-model test test-fast test-slow conformance conformance-agents gauntlet bench outsiders lint fmt tools

help: ## Show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: tools ## Set the machine up, build, and make, solve and export COUNT tasks under out/demo
	@echo "== Building termsmith (profile demo; the first build takes minutes)"
	$(call build,$(CARGO) build --profile demo --locked)
	@echo "== Checking the machine, and providing what it lacks"
	$(CARGO) run --profile demo --locked --quiet -- doctor --fix
	@echo "== Running the pipeline: $(COUNT) tasks, seed $(SEED)"
	$(CARGO) run --profile demo --locked --quiet -- run --out $(DEMO) --seed $(SEED) --count $(COUNT)

demo-model: tools ## Replay how models wrote MODEL_TASKS, at full rigor; it takes hours and needs no key
	@echo "== Building termsmith (profile demo; the first build takes minutes)"
	$(call build,$(CARGO) build --profile demo --locked)
	@echo "== Checking the machine, and providing what it lacks"
	$(CARGO) run --profile demo --locked --quiet -- doctor --fix
	@echo "== Replaying the recorded replies for $(or $(MODEL_TASKS),all) of 12 tasks"
	for shard in $(or $(MODEL_TASKS:%=%/12),0/1); do \
	  $(CARGO) run --profile demo --locked --quiet -- run --author model --oneshot --count 12 --seed 2026 --shard $$shard \
	    --rigor full --attempts 0 --mistakes 0 --settings tests/authoring/played/termsmith.toml \
	    --cassette tests/authoring/played/cassette.jsonl.zst --out out/demo-model || exit; \
	done

test-fast: tools ## Run the tests that need no container engine
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  set -x; $(CARGO) nextest run --locked --profile fast; \
	else \
	  set -x; $(CARGO) test --locked --lib; \
	fi

test-slow: ## Set the machine up and run all tests, with the long tables; an hour and more
	+$(MAKE) test PROFILE=slow

test: tools ## Set the machine up and run all tests but the long tables (all tests without nextest)
	@echo "== Building termsmith (debug)"
	$(call build,$(CARGO) build --locked)
	@echo "== Checking the machine, and providing what it lacks"
	$(CARGO) run --locked --quiet -- doctor --fix
	@echo "== Testing"
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  set -x; $(CARGO) nextest run --locked --profile $(PROFILE); \
	else \
	  set -x; $(CARGO) test --locked --all-targets; \
	fi
	$(CARGO) test --locked --doc

conformance: COUNT = 13
conformance: demo ## Run the slow suite: kills at KILLS points, killed containers, other Parquet readers, demo tasks under Harbor
	@echo "== Killing a run at $(KILLS) points"
	TERMSMITH_TEST_KILLS=$(KILLS) $(CARGO) test --locked --test docker pipeline::a_run_killed_at_any_point_continues
	@echo "== Killing containers under $(ATTEMPTS) rollouts of each of four tasks"
	binary=$$($(CARGO) build --profile demo --locked --message-format json | $(executable)) && \
	  tests/conformance/kill_containers.sh "$$binary" $(DEMO) $(ATTEMPTS) $$(ls -d $(DEMO)/tasks/*/ | head -n 4)
	@echo "== Reading $(DEMO)/data with pyarrow, DuckDB, pandas and datasets"
	$(READERS_PYTHON) tests/readers/check_parquet.py $(DEMO)/data
	$(READERS_PYTHON) tests/readers/check_mask.py $(DEMO)/data
	@echo "== Rendering function calls with chat templates"
	binary=$$($(CARGO) build --profile demo --locked --message-format json | $(executable)) && \
	  $(READERS_PYTHON) tests/readers/check_tools.py "$$binary" $$(ls -d $(DEMO)/tasks/*/ | head -n 1)
	@echo "== Measuring how well prose alone tells the sides of pairs apart"
	$(READERS_PYTHON) tests/readers/check_prose.py $(DEMO)/data
	@echo "== Comparing the first request of terminus, ours and Harbor's"
	binary=$$($(CARGO) build --profile demo --locked --message-format json | $(executable)) && \
	  $(READERS_PYTHON) tests/conformance/first_request.py "$(HARBOR)" "$$binary" $$(ls -d $(DEMO)/tasks/*/ | head -n $(ATTACKED))
	@echo "== Running oracle and nop on every task under Harbor"
	tests/readers/check_harbor.sh "$(HARBOR)" $(DEMO)/tasks
	@echo "== Attacking $(ATTACKED) tasks under Harbor, separate and shared, and under termsmith's emulation of both"
	binary=$$($(CARGO) build --profile demo --locked --message-format json | $(executable)) && \
	  $(READERS_PYTHON) tests/conformance/harbor_attacks.py "$(HARBOR)" "$$binary" templates/attacks \
	  $$(ls -d $(DEMO)/tasks/*/ | head -n $(ATTACKED))

conformance-agents: demo ## Run real agents with a scripted model, and check what is recorded
	@echo "== Running $(AGENTS) on three tasks"
	binary=$$($(CARGO) build --profile demo --locked --message-format json | $(executable)) && \
	  $(READERS_PYTHON) tests/agents/run.py "$$binary" out/agents --agents $(AGENTS) --modes $(MODES) \
	  $(if $(HARBOR_PYTHON),--harbor-python $(HARBOR_PYTHON)) $$(ls -d $(DEMO)/tasks/*/ | head -n 3)

gauntlet: tools ## Screen the corpus of planted defects, and one task of each recipe at full rigor
	@echo "== Building termsmith (profile demo; the first build takes minutes)"
	$(call build,$(CARGO) build --profile demo --locked)
	@echo "== Checking the machine, and providing what it lacks"
	$(CARGO) run --profile demo --locked --quiet -- doctor --fix
	@echo "== Screening the corpus of planted defects"
	rm -rf out/gauntlet-corpus
	tests/gauntlet/prepare.sh out/gauntlet-corpus
	$(CARGO) run --profile demo --locked --quiet -- screen --summary --out out/gauntlet out/gauntlet-corpus
	@echo "== Screening a task of each recipe at --rigor full"
	$(CARGO) run --profile demo --locked --quiet -- recipe check --seeds 1 --rigor full --out out/gauntlet-recipes
	@echo "== Trying all attacks on $(SEPARATE) tasks in Harbor's separate mode"
	$(CARGO) run --profile demo --locked --quiet -- run --count $(SEPARATE) --attempts 0 --rigor quick --out out/gauntlet-separate
	$(CARGO) run --profile demo --locked --quiet -- screen --as-harbor separate --only attack --out out/gauntlet-separate-screen out/gauntlet-separate/tasks

outsiders: tools ## Verify the wrong and honest solutions that outsiders wrote
	$(call build,$(CARGO) build --profile demo --locked)
	$(CARGO) run --profile demo --locked --quiet -- doctor --fix
	binary=$$($(CARGO) build --profile demo --locked --message-format json | $(executable)) && tests/outsiders/run.py "$$binary"

bench: tools ## Set the machine up and measure speed and memory (ARGS="latency launch --json" for less)
	@echo "== Building termsmith (release; the first build takes minutes)"
	$(call build,$(CARGO) build --release --locked)
	@echo "== Checking the machine, and providing what it lacks"
	$(CARGO) run --release --locked --quiet -- doctor --fix
	@echo "== Measuring; PEER_HARBOR=COMMAND adds Harbor to the comparison"
	$(CARGO) bench --locked --bench engine -- $(ARGS)

lint: tools ## Check formatting and lints, as CI does
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

fmt: tools ## Format the code
	$(CARGO) fmt

# Rust links with the C compiler's driver, and some dependencies compile C.
tools:
	@command -v $(firstword $(CARGO)) >/dev/null || { echo "cargo is missing: install Rust (rustup) first" >&2; exit 1; }
	@command -v $${CC:-cc} >/dev/null || { echo "a C compiler is missing: sudo apt-get install build-essential" >&2; exit 1; }
