# Cairn. `make help` lists the targets.
SHELL := /bin/bash
GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)
TOOL := CGO_ENABLED=0 $(GO) tool -modfile=tools/go.mod
HAND := sandbox/hand/bin/hand
# Stops the PostgreSQL that tests shared, whatever they answered.
STOP_TEST := $(GO) run ./db/embedded/testcluster/stop
TEST_FLAGS ?=
NPM := npm --prefix web
# What the Portal is built from.
PORTAL := $(shell find web/src web/public web/build -type f ! -name '*.test.ts*') web/index.html web/vite.config.ts web/package.json

NODE_MODULES := web/node_modules/.ready

.PHONY: help run build web hand test check gen lint live bench torture drill drill-upgrade clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

run: build ## Build and run everything; Ctrl-C stops it
	@exec ./bin/cairn up

build: hand web ## Build bin/cairn
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/cairn ./cmd/cairn

web: web/dist/index.html ## Build the Portal into web/dist (needs Node 20.19 or later)

web/dist/index.html: $(NODE_MODULES) $(PORTAL)
	@$(NPM) run -s build

# Fetched again only when the lock changed.
$(NODE_MODULES): web/package-lock.json
	@command -v npm >/dev/null || { echo "npm was not found: install Node 20.19 or later, the Portal is built with it" >&2; exit 1; }
	@$(NPM) ci --silent
	@touch $@

hand: ## Build the small static program that serves tools inside sandboxes
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(HAND) ./sandbox/hand/cmd

test: build ## Run all tests (under ten minutes)
	@status=0; $(GO) test -timeout 15m $(TEST_FLAGS) ./... || status=$$?; $(STOP_TEST) || status=1; \
	$(NPM) run -s test || status=$$?; $(NPM) run -s test:browser || status=$$?; exit $$status

check: lint web ## Lint, and see that generated code is up to date and the Portal within its size
	@$(TOOL) sqlc diff
	@$(GO) test -count=1 -run '^(TestEventsReference|TestEventTypes)$$' . >/dev/null
	@$(GO) test -count=1 -run '^TestPortalDocument$$' ./server/api
	@$(NPM) run -s check

gen: $(NODE_MODULES) ## Generate the code of the SQL queries, docs/reference/events.md, the Portal's types, and what its fold is held against
	@$(TOOL) sqlc generate
	@$(GO) test -count=1 -run '^(TestEventsReference|TestEventTypes)$$' . -update
	@$(GO) test -count=1 -run '^TestBrowserPrefixes$$' ./domain/catalog -update
	@$(GO) test -count=1 -run '^TestPortalDocument$$' ./server/api -update
	@$(NPM) run -s gen

lint: ## Format, vet, staticcheck
	@unformatted=$$($(TOOL) gofumpt -l $$(git ls-files '*.go' | grep -vE '^db/(internal|read)/')); \
	if [ -n "$$unformatted" ]; then echo "not formatted (gofumpt -w):"; echo "$$unformatted"; exit 1; fi
	@$(GO) vet ./...
	@$(TOOL) staticcheck ./...

live: build ## The Portal over a line that breaks, in Chromium, while replicas die (minutes)
	@$(NPM) run -s test:live

bench: build ## Measure against the floors, as ratios in one run
	@./bin/cairn bench

torture: build ## Positions under fire: CAIRN_TORTURE_SECONDS=60 CAIRN_TORTURE_SEED=1
	@status=0; CAIRN_TORTURE_SECONDS=$${CAIRN_TORTURE_SECONDS:-60} $(GO) test -count=1 -timeout 20m -v -run 'TestPositionsUnderFire|TestReplicasUnderFire' ./db/torture ./cmd/cairn || status=$$?; $(STOP_TEST) || status=1; exit $$status

drill: build ## Back up under load, lose everything, restore, and see that all holds
	@docs/operations/drill.sh restore

OLD ?= HEAD~1
drill-upgrade: build ## Go from the version OLD (HEAD~1) to this one under load
	@old=$$(mktemp -d) && trap 'git worktree remove --force "$$old/tree"; rm -rf "$$old"' EXIT && \
	git worktree add -q --detach "$$old/tree" $(OLD) && $(MAKE) -s -C "$$old/tree" build && \
	docs/operations/drill.sh upgrade "$$old/tree/bin/cairn"

clean: ## Remove what was built
	rm -rf bin $(HAND) web/node_modules web/.build
	find web/dist -mindepth 1 ! -name .keep -delete
