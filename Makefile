# Every command here is the only one needed: what is missing is installed first.

CARGO ?= cargo
export CLIPPY_CONF_DIR := $(CURDIR)/.ci

.PHONY: help demo test check bench chaos simulate fuzz mutants newest-tmux tools prerequisites

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: prerequisites ## Watch a local GitHub, a scripted agent and real tmux play the story
	$(CARGO) run --locked --quiet -- demo

test: prerequisites ## Run every test
	$(CARGO) test --locked

check: prerequisites ## Check format, lints, documentation, dependencies and generated references
	@.ci/check

newest-tmux: prerequisites ## Run what talks to real tmux against the newest release of it (the first time: gets it)
	@newest=$$(.ci/newest-tmux) && TMUX_BIN=$$newest $(CARGO) test --locked --no-fail-fast \
		--test contract --test runner --test host --test scenarios

bench: prerequisites ## Measure, and print the figures beside their targets (ARGS=--json for JSON)
	@$(CARGO) bench --locked --quiet --bench figures -- $(ARGS)

chaos: prerequisites ## Kill, stop and break everything for minutes, and count what got lost (ARGS="--seed 7 --python")
	@$(CARGO) bench --locked --quiet --profile dev --bench chaos -- $(ARGS)

simulate: ## Play stories on a simulated machine (SEEDS=10000, or SEED=7 with all that happens in it)
	@SEEDS=$(or $(SEEDS),10000) $(if $(SEED),SEED=$(SEED)) $(CARGO) test --locked --quiet --profile simulation --test sim -- --nocapture every_story

fuzz: ## Search for inputs that break a property (TARGET=payload, ARGS=-max_total_time=60); needs nightly
	@.ci/fuzz "$(TARGET)" $(ARGS)

mutants: prerequisites ## Change the code bit by bit, and list the changes that no test notices (ARGS="-f src/runner/paste.rs")
	@.ci/mutants $(ARGS)

tools: ## Install the optional checkers that `make check` uses when they are there
	$(CARGO) install --locked cargo-deny cargo-machete

prerequisites: ## Install tmux, git and a C compiler where they are missing
	@.ci/prerequisites
