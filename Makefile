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

.PHONY: help run build hand test check gen lint bench torture drill drill-upgrade clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

run: build ## Build and run everything; Ctrl-C stops it
	@exec ./bin/cairn up

build: hand ## Build bin/cairn
	@mkdir -p bin
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/cairn ./cmd/cairn

hand: ## Build the small static program that serves tools inside sandboxes
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(HAND) ./sandbox/hand/cmd

test: build ## Run all tests (under ten minutes)
	@status=0; $(GO) test -timeout 9m $(TEST_FLAGS) ./... || status=$$?; $(STOP_TEST) || status=1; exit $$status

check: lint ## Lint, and see that generated code is up to date
	@$(TOOL) sqlc diff

gen: ## Generate the code of the SQL queries, and docs/reference/events.md
	@$(TOOL) sqlc generate
	@$(GO) test -count=1 -run '^TestEventsReference$$' . -update

lint: ## Format, vet, staticcheck
	@unformatted=$$($(TOOL) gofumpt -l $$(git ls-files '*.go' | grep -vE '^db/(internal|read)/')); \
	if [ -n "$$unformatted" ]; then echo "not formatted (gofumpt -w):"; echo "$$unformatted"; exit 1; fi
	@$(GO) vet ./...
	@$(TOOL) staticcheck ./...

bench: build ## Measure against the floors, as ratios in one run
	@./bin/cairn bench

torture: build ## Positions under fire: CAIRN_TORTURE_SECONDS=60 CAIRN_TORTURE_SEED=1
	@status=0; CAIRN_TORTURE_SECONDS=$${CAIRN_TORTURE_SECONDS:-60} $(GO) test -count=1 -timeout 20m -v -run TestPositionsUnderFire ./db/torture || status=$$?; $(STOP_TEST) || status=1; exit $$status

drill: build ## Back up under load, lose everything, restore, and see that all holds
	@docs/operations/drill.sh restore

OLD ?= HEAD~1
drill-upgrade: build ## Go from the version OLD (HEAD~1) to this one under load
	@old=$$(mktemp -d) && trap 'git worktree remove --force "$$old/tree"; rm -rf "$$old"' EXIT && \
	git worktree add -q --detach "$$old/tree" $(OLD) && $(MAKE) -s -C "$$old/tree" build && \
	docs/operations/drill.sh upgrade "$$old/tree/bin/cairn"

clean: ## Remove what was built
	rm -rf bin $(HAND)
