# The two commands of the README come first: `make up` and `make test`.
# Each makes its own environment; nothing outside this folder changes.

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
# One more than two processors: a sixth of the time is waiting.
WORKERS ?= 3
# Known-good versions, each file by its hash; `make clean up LOCKED=` takes the newest that
# pyproject.toml allows.
LOCKED ?= 1
PIP := $(BIN)/pip --quiet --disable-pip-version-check
SERVER := server,ai
EXTRAS := $(SERVER),mcp,nats,node,objects,oidc,otel,postgres,testing
# $(call install,FILE,EXTRAS,GROUP): requirements/FILE.txt; with LOCKED= the extras and the dependency group, which pip
# knows since 25.1. Without a group any pip will do: that of Debian 12 is 23.0.
define install
	@echo "Installing what requirements/$(1).txt lists into .venv; only the first time, a minute or two"
	@$(if $(LOCKED),$(PIP) install --no-deps --require-hashes -r requirements/$(1).txt,$(PIP) install 'pip>=25.1')
	@$(PIP) install $(if $(LOCKED),--no-deps --no-build-isolation -e .,-e '.[$(2)]' $(3:%=--group %))
endef

.PHONY: help trace up test proofs check lint types layers format bench surface docs deep bars chaos storm power-cuts mutation scopes tables clean
.PHONY: debian image upgrade profile shots tour client clients generated lowest newest between wheels lock release

##@ Run it

up: .venv/.server          ## install the server and run it with a sample
	$(BIN)/wfcore up --port $(PORT)

##@ Before a change is merged

# What takes minutes: kills and restarts, planted bugs, power cuts, packages, generated clients, each page of the docs, thousands of drawn values,
# pages in a browser, type checkers on what users write, several processes at once.
BROWSER := $(wildcard tests/adapters_http/console/test_*_in_browser.py) $(addprefix tests/adapters_http/console/test_,approval.py approval_kept.py other_origins.py \
  real_review.py security_keys.py targets.py typed_kept.py typing_in_many_rows.py ways.py)
PROOFS := tests/proofs/kills tests/proofs/simulator tests/system/scenarios/test_fault.py tests/system/scenarios/test_traces.py tests/proofs/durability tests/proofs/escapes tests/proofs/clients tests/proofs/packaging tests/docs/test_pages.py \
  tests/adapters_runtime/code/packages/test_package_escapes.py tests/adapters_runtime/code/packages/test_packages.py tests/adapters_runtime/code/packages/test_package_steps.py tests/adapters_runtime/code/test_leaks.py \
  tests/wfcore/testing/test_comparison.py tests/proofs/kit/test_the_kit_bites.py tests/wfcore/testing/test_values.py tests/wfcore/rules/execution/test_trees.py \
  tests/wfcore_client/test_client_types.py tests/wfcore/testing/test_surface.py \
  tests/adapters_store/test_moving.py tests/adapters_store/test_point_in_time.py tests/adapters_store/test_postgres_comparison.py tests/adapters_store/test_postgres_races.py \
  tests/adapters_store/test_sqlite_statements.py tests/adapters_http/console/test_values.py tests/adapters_http/console/test_journeys.py $(BROWSER) \
  tests/adapters_http/test_credentials.py tests/wfserver/test_cli_packages.py tests/system/scenarios/test_stopping.py tests/system/scenarios/test_restarts.py \
  tests/system/scenarios/test_triggers.py tests/system/scenarios/test_two_servers.py tests/system/nodes/test_bucket.py tests/system/nodes/test_packages.py tests/system/nodes/test_traces.py \
  tests/system/nodes/test_nats.py tests/system/nodes/test_hostile_nats.py tests/system/deploy/test_shipped_services.py tests/system/deploy/test_rolling_upgrade.py tests/system/deploy/test_systemd.py \
  tests/docs/test_type_checkers.py tests/examples/test_approve_by_rule.py tests/adapters_http/transport/test_slow_clients.py tests/adapters_store/test_packing_contract.py \
  tests/system/scenarios/test_processes.py tests/system/scenarios/test_concurrency.py tests/system/scenarios/test_metrics.py \
  tests/wfserver/test_check.py tests/wfserver/test_cli_bucket.py tests/wfserver/test_cli_move.py tests/wfserver/test_seal.py tests/examples/test_network_store.py \
  tests/system/scenarios/test_signed_attacks.py tests/system/scenarios/test_examples_killed.py tests/system/deploy/test_passkeys_behind_a_proxy.py
# Some of each kind, few times, in a third of that: what CI runs (decision 236). Bugs are not planted, and not every page is tried.
SOME := tests/proofs/kills/test_kill_loop.py tests/proofs/kills/test_shared_kill_loop.py tests/proofs/simulator/test_worlds.py tests/proofs/simulator/test_own.py tests/proofs/simulator/test_exploration.py tests/system/scenarios/test_fault.py \
  tests/system/scenarios/test_stopping.py tests/system/scenarios/test_restarts.py tests/system/scenarios/test_two_servers.py tests/system/scenarios/test_processes.py tests/system/scenarios/test_concurrency.py \
  tests/proofs/durability/test_power_cuts.py tests/proofs/durability/test_flushes.py::test_nothing_is_answered_before_it_is_flushed tests/proofs/escapes \
  tests/adapters_runtime/code/test_leaks.py tests/system/nodes/test_bucket.py tests/system/nodes/test_nats.py tests/system/deploy/test_rolling_upgrade.py \
  tests/adapters_store/test_packing_contract.py tests/adapters_store/test_postgres_races.py tests/adapters_store/test_postgres_comparison.py tests/adapters_store/test_sqlite_statements.py \
  tests/wfserver/test_check.py tests/wfserver/test_cli_bucket.py tests/wfserver/test_cli_move.py tests/wfserver/test_seal.py tests/wfcore_client/test_client_types.py \
  tests/proofs/clients/test_generated.py tests/proofs/clients/test_fuzzed.py tests/proofs/packaging/test_installing.py tests/adapters_http/test_credentials.py \
  tests/adapters_http/console/test_approval.py tests/adapters_http/console/test_real_review.py
FEW := HYPOTHESIS_PROFILE=few WORLDS=500 KILL_ROUNDS=4 PG_KILL_ROUNDS=1 POWER_CUTS=50 LEAK_STEPS=100 PG_EXAMPLES=4 FUZZ_EXAMPLES=2

test: client               ## install what the tests need and run them
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(PROOFS:%=--ignore=%)

proofs: client             ## the tests that attack: kills, planted bugs, power cuts, escapes, clients, pages; SHORT=1: some of each, as in CI
	$(if $(SHORT),$(FEW)) $(BIN)/pytest -n $(WORKERS) --dist worksteal $(if $(SHORT),$(SOME),$(PROOFS))

check: lint types layers  ## lint, types and layers: fast, nothing is run

lint: client               ## style and format
	$(BIN)/ruff check src tests bench examples docs tools client hatch_build.py
	$(BIN)/ruff format --check src tests bench examples docs tools client hatch_build.py

types: client              ## mypy, strict
	$(BIN)/mypy
	$(BIN)/mypy examples tools client hatch_build.py

layers: client             ## who may import whom
	$(BIN)/lint-imports

format: .venv/.dev         ## put sources into the standard format
	$(BIN)/ruff check --fix src tests bench examples docs tools client hatch_build.py
	$(BIN)/ruff format src tests bench examples docs tools client hatch_build.py

##@ Write down what changed

tables: client             ## write anew what the documentation shows of tables, pictures included
	$(BIN)/python docs/fill.py
	$(BIN)/python -m tests.proofs.escapes.page
	$(BIN)/python -m tests.architecture.measure --write >/dev/null
	$(BIN)/python -m tests.proofs.mutation.page >/dev/null
	$(BIN)/python -m tests.proofs.pages

LOCALE := src/wfcore/locale
messages: .venv/.dev       ## collect the words that people read, and compile their translations
	$(BIN)/pybabel -q extract -k phrase -F .ci/babel.cfg --omit-header --sort-output --add-location=never \
	  --no-wrap -o $(LOCALE)/wfcore.pot .
	$(BIN)/pybabel -q update -D wfcore -i $(LOCALE)/wfcore.pot -d $(LOCALE) --no-wrap \
	  --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date
	$(BIN)/pybabel -q compile -D wfcore -d $(LOCALE)

client: .venv/.dev         ## write the generated modules of the client, which git does not keep
	@$(BIN)/python tools/client/generate.py

shots: .venv/.dev          ## pictures of every page of the console into build/shots
	$(BIN)/python -m tests.adapters_http.console.shots build/shots

tour: .venv/.dev           ## make the pictures of the documentation's tour anew
	$(BIN)/python -m tests.adapters_http.console.shots docs/_static/console tour

surface: client            ## write the public names and signatures anew; review the difference
	cd tools && ../$(BIN)/python -m wfdocs.surface

docs: client               ## build the documentation; warnings are errors
	$(BIN)/sphinx-build -q -E -W --keep-going -b html docs docs/_build/html
	@echo docs/_build/html/index.html

##@ Test for long

bars: .venv/.dev           ## what pages promise in figures, measured in a browser; on a machine that does nothing else
	BARS=1 $(BIN)/pytest -q -s tests/adapters_http/console/test_bars.py

deep: client               ## properties, worlds, kills and leaks with many more examples
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -n $(WORKERS) tests/wfcore/rules
	WORLDS=100000 $(BIN)/pytest -q -n $(WORKERS) tests/proofs/simulator/test_worlds.py
	MOVED_WORLDS=2000 $(BIN)/pytest -q -n $(WORKERS) tests/proofs/simulator/test_moved.py
	KILL_ROUNDS=50 LEAK_STEPS=1000 $(BIN)/pytest -q tests/proofs/kills/test_kill_loop.py tests/adapters_runtime/code/test_leaks.py
	PG_KILL_ROUNDS=20 LOST_ANSWERS=200 MOVE_EXAMPLES=200 $(BIN)/pytest -q tests/proofs/kills/test_shared_kill_loop.py \
	  tests/system/nodes/test_faults.py tests/adapters_store/test_moving.py
	SCENARIOS_STORE=postgres $(BIN)/pytest -q -n $(WORKERS) --dist worksteal tests/system/scenarios

scopes: .venv/.dev         ## every state of every small world of the simulator; writes the table of docs/simulator.md (long)
	SCOPES=1 $(BIN)/pytest -q tests/proofs/simulator/test_exploration.py
	cd tools && ../$(BIN)/python -m wfdocs.scopes
	$(BIN)/python -m tests.proofs.simulator.lengths

generated: .venv/.dev      ## clients in four languages: generated, type-checked; linters of the API
	.ci/clients

clients: generated         ## the same, and fuzz the API (long)
	FUZZ_EXAMPLES=100 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal tests/proofs/clients

upgrade: .venv/.dev        ## two versions beside each other under load for a minute; PREVIOUS=checkout of another
	UPGRADE_S=60 $(BIN)/pytest -q -s tests/system/deploy/test_rolling_upgrade.py

image: .venv/.dev          ## build and run the container image without a daemon: as root, with debootstrap (long)
	.ci/image

debian:                    ## the two commands of the README on a fresh Debian, as root, with debootstrap (long); SUITE=bookworm
	.ci/debian $(SUITE)

chaos: .venv/.dev          ## servers on three stacks under load while everything around them fails; CHAOS_SEED=n repeats what chance decided
	CHAOS_S=$${CHAOS_S:-12} $(BIN)/pytest -q -s tests/proofs/chaos

storm: .venv/.dev          ## the worst of chaos in one play, and a planted bug that must be found: a minute and a half
	CHAOS_S=4 CHAOS_SEED=$${CHAOS_SEED:-1} $(BIN)/pytest -q tests/proofs/chaos/test_checker.py tests/proofs/chaos/test_chaos.py::test_the_worst_at_once \
	  'tests/proofs/chaos/test_planted.py::test_a_planted_mistake_is_found[leases_by_the_process]'

record: .venv/.dev         ## the long runs that docs/chaos.md and docs/record.md report (a day); seeds as chance will
	RECORD=1 CHAOS_S=12 CHAOS_ROUNDS=9 $(BIN)/pytest -q -s tests/proofs/chaos/test_chaos.py
	RECORD=1 KILL_ROUNDS=1000 $(BIN)/pytest -q tests/proofs/kills/test_kill_loop.py
	RECORD=1 PG_KILL_ROUNDS=1000 $(BIN)/pytest -q tests/proofs/kills/test_shared_kill_loop.py
	RECORD=1 WORLDS=100000 $(BIN)/pytest -q -n $(WORKERS) tests/proofs/simulator/test_worlds.py
	RECORD=1 POWER_CUTS=10000 $(BIN)/pytest -q tests/proofs/durability/test_power_cuts.py
	RECORD=1 $(BIN)/python -m bench.soak 120
	$(BIN)/python -m tests.proofs.pages

power-cuts: .venv/.dev     ## cut the power at 10,000 moments of a run (long); POWER_CUTS_SEED=n for others
	POWER_CUTS=10000 $(BIN)/pytest -q tests/proofs/durability/test_power_cuts.py

mutation: .venv/.dev       ## break the code in every small way; the tests must notice (long); MODULES=wfcore.rules or SAMPLE=9 tries less
	$(PIP) install 'pip>=25.1' && $(PIP) install --group mutation
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m tests.proofs.mutation.run $(SAMPLE:%=--sample=%) $(MODULES)

trace: .venv/.dev          ## how much there is to read: sizes, and the files that four walks cross
	$(BIN)/python -m tests.architecture.measure

bench: .venv/.dev          ## ratios, measured in one run
	$(BIN)/python -m bench

profile: .venv/.dev         ## CPU time of an execution by phase; samples a server from outside, which may take root
	$(PIP) install 'py-spy>=0.4,<0.5'
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m bench.profile

##@ Versions and releases

lowest:                    ## the server's tests with the lowest versions that pyproject.toml allows
	.ci/versions lowest

newest:                    ## the server's tests with the newest versions, on the newest Python here
	.ci/versions newest

between:                   ## the core's tests with the locked versions, on each Python between the oldest and newest here
	.ci/versions between

wheels:                    ## .wheelhouse/: what tests of fresh environments install on each Python here (downloads)
	.ci/versions wheels

lock:                      ## take newer versions: run all tests with them, then write requirements/
	.ci/versions lock

release: client            ## dist/: the wheels, the sdist and a list of components, checked
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	$(BIN)/python -m build --no-isolation --wheel --outdir dist client >/dev/null
	$(BIN)/cyclonedx-py requirements requirements/server.txt --pyproject pyproject.toml --mc-type application \
	  --output-reproducible --output-file dist/sbom.cdx.json
	RELEASE=$(CURDIR)/dist $(BIN)/pytest -q tests/proofs/packaging
	cd dist && sha256sum * | tee SHA256SUMS

##@ Other

help:                      ## this list
	@awk -F ':.*## ' '/^##@ /{print "\n" substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' Makefile

clean:                     ## remove environments, caches and everything built
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .wheelhouse docs/_build docs/reference mutants



.venv/bin/python:
	@echo "Making .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "wfcore needs Python 3.11 or newer; set PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -m venv .venv \
	  || { rm -rf .venv; echo "Install the venv module first: apt-get install python3-venv"; exit 1; }

# A Node that runs TypeScript, too (22.18 or newer), on PATH or from the extra `node`: what a server would use.
HAS_NODE = $(BIN)/python -c 'import sys; from wfcore import Language; from wfserver.definitions.read import interpreters; \
  sys.exit(not interpreters().find(Language.TYPESCRIPT).available)'

.venv/.server: .venv/bin/python pyproject.toml requirements/server.txt requirements/node.txt
	$(call install,server,$(SERVER))
	@$(HAS_NODE) \
	  || $(PIP) install $(if $(LOCKED),--no-deps --require-hashes -r requirements/node.txt,-e '.[node]') \
	  || echo "Node could not be installed: steps in JavaScript and TypeScript will not run"
	@echo "Compiling"
	@$(BIN)/python -m compileall -q src   # an editable installation does not, and each start would
	@touch $@

.venv/.dev: .venv/bin/python pyproject.toml requirements/dev.txt
	$(call install,dev,$(EXTRAS),dev)
	@if command -v npm >/dev/null; then \
	  for tools in adapters_http/senders docs/editors adapters_http/console proofs/clients; do \
	    npm ci --prefix tests/$$tools --ignore-scripts --no-audit --no-fund --silent \
	      || echo "tests/$$tools is not installed: its tests are skipped"; done; fi
	@$(BIN)/python -m compileall -q src
	@touch $@ .venv/.server
