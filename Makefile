# `make run` and `make test` do all set-up by themselves; `make help` lists the rest.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

sources := $(shell find src -type d -o -name '*.ts')
inputs := $(sources) scripts/build.mjs scripts/import-source.mjs scripts/podbot-stub.cjs package.json package-lock.json tsconfig.json tsconfig.build.json

# The goal `soak` where it repeats the slow suite.
soaks-e2e := $(if $(filter e2e all,$(SUITE)),soak)
# What sudo passes on to the slow suite.
passed := CI PODBOT_E2E_ENGINES HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy NODE_EXTRA_CA_CERTS

.PHONY: help run test test-e2e check soak package docs bench build setup native native-other e2e-agents clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

run: build ## the demo: a scripted agent behind a real wall
	@node dist/podbot.cjs demo

test: build ## the fast suite: real bubblewrap, no daemon, no network
	@exec node scripts/suite.mjs fast $(FILES)

test-e2e: build native-other e2e-agents ## the slow suite: real packages, real engines
	@exec $(if $(filter 0,$(shell id -u)),,sudo -n env PATH="$(PATH):/usr/sbin:/sbin" $(foreach name,$(passed),$(if $($(name)),$(name)="$($(name))"))) scripts/private-mounts.sh node scripts/suite.mjs e2e $(FILES)

soak: build $(if $(soaks-e2e),native-other e2e-agents) ## repeat the tests under stalls, load, slow disk, jumping clock: FILES, SUITE, SEED, MINUTES, WITH
	@exec node scripts/soak.mjs --suite "$(or $(SUITE),fast)" --seed "$(SEED)" --minutes "$(MINUTES)" --with "$(WITH)" $(FILES)

check: build ## format, lint, types, dead code, package, docs
	XDG_CACHE_HOME=$(CURDIR)/.make/cache biome ci --error-on-warnings --colors=off
	tsc -p .
	knip
	@$(MAKE) package
	node scripts/docs.mjs --check

package: build native-other # what npm would publish
	@rm -rf .make/package && mkdir -p .make/package
	@npm pack --loglevel=error --pack-destination .make/package >/dev/null
	publint --strict .make/package/*.tgz
	attw --quiet --profile esm-only .make/package/*.tgz

docs: setup ## write the generated parts of docs/
	@node scripts/docs.mjs

bench: build e2e-agents ## start-up and overhead, as ratios in one run
	@node bench/run.mjs

build: native dist/podbot.cjs ## native programs and dist/

setup: ## system packages and node_modules
	@scripts/setup.sh $(if $(filter test test-e2e soak,$(MAKECMDGOALS)),test) \
		$(if $(filter package check test-e2e $(soaks-e2e),$(MAKECMDGOALS)),package) \
		$(if $(filter test-e2e $(soaks-e2e),$(MAKECMDGOALS)),test-e2e) $(filter bench,$(MAKECMDGOALS))

native: | setup
	@$(MAKE) -s -C native

native-other: | setup
	@$(MAKE) -s -C native other

e2e-agents: | setup
	@node scripts/e2e-agents.mjs

dist/podbot.cjs: $(inputs) | setup
	@node scripts/build.mjs
	@touch $@

clean: ## remove everything that was built
	@rm -rf dist coverage .make native/bin
