# `make run` and `make test` do all set-up by themselves; `make help` lists the rest.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

sources := $(shell find src -type d -o -name '*.ts')
inputs := $(sources) scripts/build.mjs scripts/import-source.mjs package.json package-lock.json tsconfig.json tsconfig.build.json

.PHONY: help run test test-e2e check coverage package docs bench build setup native native-other clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

run: build ## the demo: a scripted agent behind a real wall
	@node dist/podbot.cjs demo

test: build ## the fast suite: real bubblewrap, no daemon, no network
	@vitest run

test-e2e: build native-other ## the slow suite: real packages, real engines
	@$(if $(filter 0,$(shell id -u)),,sudo -n env PATH="$(PATH)" CI="$(CI)") vitest run --mode e2e

check: build ## format, lint, types, dead code, package, docs, coverage
	biome ci --error-on-warnings --colors=off
	tsc -p .
	knip
	@$(MAKE) package
	node scripts/docs.mjs --check
	@$(MAKE) coverage

# They take long, and what they cover of the pure rooms others cover, too.
slow := test/bridge/fuzz.test.ts test/github/token-daemon.test.ts test/wall/session-attacks.test.ts test/wall/doors.test.ts

coverage: build # the pure rooms, to the last branch
	vitest run --coverage test/errors test/config test/policy test/plan test/wall test/agents test/wire test/registry test/journal test/engine test/image test/gateway test/github test/credentials test/bridge test/upstream $(addprefix --exclude ,$(slow))

package: build native-other # what npm would publish
	@rm -rf .make/package && mkdir -p .make/package
	@npm pack --silent --pack-destination .make/package >/dev/null
	publint --strict .make/package/*.tgz
	attw --quiet --profile esm-only .make/package/*.tgz

docs: setup ## write the generated parts of docs/
	@node scripts/docs.mjs

bench: build ## start-up and overhead, as ratios in one run
	@node bench/run.mjs

build: native dist/podbot.cjs ## native programs and dist/

setup: ## system packages and node_modules
	@scripts/setup.sh $(if $(filter test test-e2e check coverage,$(MAKECMDGOALS)),test) \
		$(if $(filter package check test-e2e,$(MAKECMDGOALS)),package) \
		$(filter test-e2e bench,$(MAKECMDGOALS))

native: | setup
	@$(MAKE) -s -C native

native-other: | setup
	@$(MAKE) -s -C native other

dist/podbot.cjs: $(inputs) | setup
	@node scripts/build.mjs
	@touch $@

clean: ## remove everything that was built
	@rm -rf dist coverage .make native/bin
