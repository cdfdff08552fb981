# `make` lists the targets. `make run` is the way in, `make test` is what CI runs: it needs Go, Node
# and npm, nothing else, and everything it uses is pinned (go.mod, build/tools/go.mod, build/package-lock.json).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# What was compiled is shared by all targets, and by other checkouts.
export GOFLAGS := $(GOFLAGS) -trimpath

BIN      := bin/tidemark
ARGS     ?=
ENV      ?=
BENCH    ?= .
COUNT    ?= 1
FUZZTIME ?= 20s
ROUNDS   ?= 50
# How many random kills `make fault` does of the binary, and a fifth of it of workerd; tests of the name
# TestKill* read it, and do few or none without.
FAULT_KILLS ?= 500
# How long each storm of `make chaos` and `make soak` lasts.
CHAOS_SECONDS ?= 180
# The long log of `make e2e-limits`, in MB; the Worker has it in `make soak`.
LOG_MB ?= 10
# What of ./test/e2e is tried natively only; `make soak` has it in workerd.
NATIVELY ?= Test(Needles|LongImport|LargeMessage|ManySessions|KeepAlive|OpenAI|DelegateRestart|SchedulesMissed)/workerd$$
# What of the proxy `make test` tries in workerd, too: what depends on the host; `make soak` has all of it there.
PROXY_PARTS ?= untouched,faults,others,sizes
# What `make mutate` plants faults in, which and how many, and what share of them tests have to notice, in percent.
PACKAGES ?= compaction session $(patsubst %/,%,$(sort $(dir $(wildcard room/*/*.go)))) blocks agent claude paging proxy proxy/body proxy/stream archive memory reset trim snapshot
SEED     ?= 1
N        ?= 120
FLOOR    ?=
# Turns of `make soak-odd`, in worlds from SEED on.
TURNS ?= 100000
# A line of so many MB that `make bench-trim` measures too.
LINE_MB ?= 0

# The general linter, in a module of its own so that none of its 200 requirements is ours.
LINT := .cache/bin/golangci-lint
# Counts the tests of Go and of node, see test/suite.sh.
SUM := .cache/bin/gotestsum
suite = test/suite.sh $@

JS := GOOS=js GOARCH=wasm
# Runs a js/wasm test binary on the bridge of the Worker, with Go timers that never fire.
EXEC := $(CURDIR)/build/exec-wasm.sh
NODE_MODULES := build/node_modules/.package-lock.json
TEST_MODULES := test/node_modules/.package-lock.json
WEB_MODULES := web/node_modules/.package-lock.json
AGENT_MODULES := test/agents/node_modules/.package-lock.json
# Lists are piped into xargs, so that a list that cannot be made fails the target.
with = build/packages.sh $(1) | xargs -r

# The program and the Worker that are there, for tests that would make their own.
BUILT = env TIDEMARK_BIN=$(CURDIR)/$(BIN) TIDEMARK_WORKER=$(CURDIR)/dist

define title
@printf '\n== %s\n' '$(1)'
endef

# What `make test` runs, LANES at a time, the longest first. What each told is printed at its end, and one that failed
# does not keep the others from running.
LANES ?= 3
WEB_BOTH := test/web/cors.test.mjs
# Where the other tests of the page run: it is the same page, and `make soak` has it on both hosts.
WEB_HOSTS ?= native
CHECKS := lint vet rules same dry-run fmt-check tidy-check
E2E := e2e-web e2e-worker e2e-fault e2e-bridge e2e-tools e2e-native e2e-limits e2e-proxy e2e-clients e2e-whatsapp e2e-mcp e2e-sockets
SUITES := test-go $(E2E) test-js
SOAK := e2e-agents soak-web soak-go soak-proxy soak-front soak-limits soak-js soak-benchmarks soak-fault soak-many soak-storm soak-odd soak-mutate e2e-sdk e2e-s3
beside = $(MAKE) -k -j$(LANES) --output-sync=target -o wasm -o build -o web

# Makes what all of them stand on (a target that still waits for something would begin last), runs targets beside each
# other, and tells at the end how many tests there were, how long all of it took and which were slow.
define counted
@rm -rf .cache/tests; began=$$(date +%s); status=0; \
	$(MAKE) -j$(LANES) --output-sync=target wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) $(2); \
	$(beside) $(1) || status=$$?; \
	test/count.sh $$(($$(date +%s) - began)) || status=1; exit $$status
endef

.PHONY: help run build web dev deploy wasm test check e2e soak soak-episodes fault chaos chaos-worker fuzz race clean \
	bench floors bench-worker bench-sockets bench-webhook bench-door bench-trim mutate $(CHECKS) $(SUITES) $(SOAK)

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | awk -F'\t' '{ printf "  %-8s %s\n", $$1, $$2 }'

run: build ## Build and serve at 127.0.0.1:8787 (ARGS="--flag value")
	$(BIN) serve $(ARGS)

build: web ## Build bin/tidemark
	go build -o $(BIN) ./cmd/tidemark

test: ## Everything CI runs: check, tests, end to end on both hosts
	$(call counted,$(SUITES) $(CHECKS),$(LINT))

check: wasm $(CHECKS) ## Format, vet, lint, import table, budgets, the upload of the Worker

bench: ## Run the benchmarks (BENCH=regexp COUNT=n)
	$(call with,with 'func Benchmark') go test -p 1 -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m

floors: ## Hold recall to its figures on real data (TIDEMARK_LOCOMO=folder)
	go test ./bench -count 1 -v -run TestLocomoFloors

bench-worker: wasm $(NODE_MODULES) ## Run the benchmarks of the Worker beside JavaScript (PARTS="cold turn", Linux)
	go run ./build -main ./host/probe -out .cache/probe
	node test/bench/worker.mjs $(PARTS)

bench-webhook: wasm build $(SUM) $(NODE_MODULES) ## Measure how fast webhooks are acknowledged on both hosts
	$(call title,webhooks)
	node test/bench/webhook.mjs dist $(BIN)

bench-door: build ## Measure what the proxy adds to a request of 1 MB
	$(call title,the proxy door)
	node test/bench/door.mjs $(BIN)

bench-trim: build ## Measure trim beside grep (TIDEMARK_CMV=checkout LINE_MB=600 LOGS=files)
	$(call title,trim)
	go run ./test/trim -peer '$(TIDEMARK_CMV)' -line '$(LINE_MB)' $(BIN) $(LOGS)

bench-sockets: wasm build $(SUM) $(NODE_MODULES) ## Measure open sockets on both hosts (SOCKETS=1000, Linux)
	node test/bench/sockets.mjs dist $(BIN)

lint: $(LINT) ## Lint on both targets
	$(call title,lint)
	$(call with,lint-native) $(LINT) run
	$(call with,lint-js) env $(JS) $(LINT) run

mutate: ## Plant N faults (120) in PACKAGES, drawn by SEED, and print which of them no test notices
	go run ./test/mutate -seed $(SEED) -n $(N) -floor $(or $(FLOOR),0) $(PACKAGES)

fuzz: ## Run each fuzz target for FUZZTIME (20s)
	@build/fuzz.sh '$(FUZZTIME)'

# What takes too long for each change.
soak: ## The nightly run: what `make test` leaves out, ROUNDS times (50) its random rounds
	$(call counted,$(SOAK))

# What takes long, and the laws of views, plans, trees and queues on random histories.
soak-go: $(SUM)
	{ build/packages.sh native; echo ./test/paging; } | TIDEMARK_ROUNDS=$(ROUNDS) xargs $(suite) go -vet=off -count=1 -timeout 100m
	$(suite)-e2e go -count=1 -timeout 30m ./test/e2e -targets in-process

# All of the proxy on both hosts.
soak-proxy: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES)
	SOAK=1 $(suite) node test/proxy/proxy.mjs $(BIN) dist

# The front with every combination of settings, instances whose memory must come back, and deployments of all kinds.
soak-front: wasm $(SUM) $(NODE_MODULES)
	go run ./build -main ./host/probe -out .cache/probe
	SOAK=1 $(suite) node test/front.mjs .cache/probe dist
	$(suite)-deploy node test/deploy.mjs

# The largest results, queues and logs in the Worker, too.
soak-limits: wasm build $(SUM) $(NODE_MODULES)
	SOAK=1 LOG_MB=30 $(suite) node test/limits.mjs dist $(BIN)

# All that the Worker links, under js/wasm, where a Go timer never fires and SQLite is another.
soak-js: $(SUM) $(NODE_MODULES)
	$(call with,worker) env $(JS) $(suite) go -timeout 60m -exec '$(EXEC)'

# What no test notices of planted faults; a share below FLOOR percent fails.
soak-mutate:
	$(call title,planted faults)
	go run ./test/mutate -seed $(SEED) -n $(N) -floor $(or $(FLOOR),85) $(PACKAGES)

# Model APIs that answer anything and refuse by their rules: each next turn is answered.
soak-odd: $(SUM)
	$(suite) go -vet=off -count=1 -timeout 3h ./test/odd -turns $(TURNS) -seed $(SEED)
	@grep -oh '[0-9]* turns of .* seconds' .cache/tests/$@.json

# No benchmark rots.
soak-benchmarks: $(SUM)
	$(call with,with 'func Benchmark') $(suite) go -run '^$$' -bench . -benchtime=1x -timeout 30m

# The page in front of both hosts.
soak-web: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES)
	@SOAK=1 $(MAKE) -o wasm -o build -o web WEB_HOSTS=native,workerd e2e-web

# Each step at which a server may be killed, and some at random.
soak-fault: wasm build $(SUM) $(NODE_MODULES)
	FAULT_KILLS=$(ROUNDS) $(BUILT) $(suite) go -vet=off -count=1 -timeout 80m ./test/fault

# A thousand first turns at once, and five thousand conversations, in one isolate.
soak-many: wasm $(SUM) $(NODE_MODULES)
	$(suite) node test/many.mjs dist

# Kills, panics and evictions in workerd.
soak-storm: chaos-worker $(SUM) $(NODE_MODULES)
	CHAOS_SECONDS=$(CHAOS_SECONDS) $(suite) node test/chaos.mjs .cache/chaos

soak-episodes: ## Hold the laws of episodes over a million annotated histories
	go test -count=1 -run '^TestSoak$$' -soak 1000000 -timeout 100m -v ./compaction

fault: $(NODE_MODULES) ## Kill it at every arrow and FAULT_KILLS times at random (500), workerd a fifth of that
	$(call with,with 'func TestKill') env FAULT_KILLS=$(FAULT_KILLS) go test -p 1 -count=1 -v -run '^TestKill' -timeout 80m | \
		grep -vE '^ *(=== |--- PASS: .*/|[a-z_]+\.go:[0-9]+: kills=1 )'

chaos: chaos-worker $(NODE_MODULES) ## Break the Worker for CHAOS_SECONDS (180)
	CHAOS_SECONDS=$(CHAOS_SECONDS) node test/chaos.mjs .cache/chaos

e2e: ## End to end: both hosts, clients of others, the page, phones
	$(call counted,$(E2E))

# The Worker with the doors that break it.
chaos-worker:
	go run ./build -tags chaos -out .cache/chaos

wasm: ## Build the Worker
	$(call title,the Worker)
	go run ./build
	@mkdir -p .cache && touch .cache/wasm

web: .cache/web ## Bundle the page and gate its size

dev: web $(NODE_MODULES) ## Run the Worker here, offline, at 127.0.0.1:8787 (PORT=n)
	@node build/cloud.mjs dev

deploy: web $(NODE_MODULES) ## Deploy the Worker on Cloudflare, with its secrets and bucket (ENV=staging)
	@node build/cloud.mjs deploy $(ENV)

test-js: $(SUM) $(NODE_MODULES) $(WEB_MODULES) ## Tests of the shim and of the page without a browser, and of what differs under js/wasm
	$(suite) node --test build/*.test.mjs test/web/*pure.test.mjs
	env $(JS) $(suite)-wasm go -vet=off -timeout 10m -exec '$(EXEC)' ./internal/json

clean: ## Remove what was built and the pinned tools
	rm -rf bin dist .cache {build,web,test,test/agents}/node_modules web/dist/[!.]*

e2e-clients: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) ## The doors with official clients: openai, @anthropic-ai/sdk, ai, on both hosts
	$(suite)-fakes node --test test/clients/models.test.mjs
	$(suite) node test/clients/clients.mjs $(BIN) dist

e2e-proxy: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) ## The proxy with official clients against a strict fake provider, on both hosts
	$(suite)-fakes node --test test/proxy/upstream.test.mjs
	$(suite) node test/proxy/proxy.mjs $(BIN) dist native
	$(suite)-workerd node test/proxy/proxy.mjs $(BIN) dist workerd $(PROXY_PARTS)

e2e-mcp: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) ## The server of the Model Context Protocol with its official clients, on both hosts
	$(suite) node test/mcp/mcp.mjs $(BIN) dist

e2e-agents: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) $(AGENT_MODULES) ## Claude Code itself behind the proxy, on both hosts (CLAUDE=program for another version)
	$(suite) node test/agents/agents.mjs $(BIN) dist

# What the targets above are made of.

fmt-check:
	$(call title,format)
	@bad=$$(find . \( -name '.?*' -o -name node_modules \) -prune -o -name '*.go' -print | xargs -r gofmt -l); \
	if [ -n "$$bad" ]; then printf 'run gofmt -w on\n%s\n' "$$bad"; exit 1; fi

vet:
	$(call title,vet for js/wasm: lint has it natively)
	$(call with,js) env $(JS) go vet
	$(JS) go vet -tags chaos ./cmd/worker

tidy-check:
	$(call title,go.mod is tidy)
	go mod tidy -diff

rules: $(SUM)
	$(call title,Worker discipline$(comma) import table$(comma) budgets)
	$(suite) go -vet=off -count=1 ./internal/lint

test-go: $(SUM)
	{ build/packages.sh native; echo ./test/mutate ./test/odd; } | xargs $(suite) go -short -vet=off -timeout 30m

e2e-native: build $(SUM)
	$(BUILT) $(suite) go -vet=off -count=1 -timeout 10m ./test/e2e -targets native

# Kills, full disks and lost buckets, the binary's and workerd's, and what has a test beside its program.
e2e-fault: wasm build $(SUM) $(NODE_MODULES)
	$(BUILT) $(suite) go -vet=off -count=1 -timeout 15m ./test/fault

# The bridge under faults, by a Worker that misbehaves on request, and the contracts of its ports.
e2e-bridge: wasm build $(SUM) $(NODE_MODULES)
	go run ./build -main ./host/probe -out .cache/probe
	$(suite) node test/worker.mjs .cache/probe
	$(suite)-front node test/front.mjs .cache/probe dist
	$(suite)-deploy node --test-name-pattern='of tidemark from nothing' test/deploy.mjs
	TIDEMARK_PROBE=$(CURDIR)/.cache/probe $(BUILT) $(suite)-ai go -vet=off -count=1 -timeout 10m ./test/ai
	$(suite)-contract run node test/contract.mjs

e2e-limits: wasm build $(SUM) $(NODE_MODULES) ## The edges of sizes on both hosts (LOG_MB=10)
	LOG_MB=$(LOG_MB) $(suite) node test/limits.mjs dist $(BIN)

e2e-worker: wasm $(SUM) $(NODE_MODULES)
	$(suite) go -vet=off -count=1 -timeout 15m -skip '$(NATIVELY)' ./test/e2e -targets workerd -worker $(CURDIR)/dist

e2e-sockets: build chaos-worker $(SUM) $(NODE_MODULES)
	$(suite) node test/ws.mjs .cache/chaos $(BIN)

# The module that is served is what go build makes of cmd/worker.
same: wasm
	$(call title,the module is a plain go build)
	@mkdir -p .cache/plain
	$(JS) go build -trimpath -ldflags='-s -w' -o .cache/plain/app.wasm ./cmd/worker
	cmp dist/app.wasm .cache/plain/app.wasm

# What a deployment would send, for each environment of wrangler.toml.
dry-run: wasm web $(NODE_MODULES)
	$(call title,what a deployment would send)
	node build/cloud.mjs check

# The fake model server and our streams, read by the vendors' Go SDKs: in a module of its own, so that none is a requirement.
e2e-sdk: $(SUM)
	cd test/sdk && ../../$(suite) go -count=1 -timeout 10m ./...

e2e-tools: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) ## Tools through whole turns with servers from npm, modules, approvals, on both hosts; our own server of MCP
	TIDEMARK_TOOL_SERVERS=$(CURDIR)/test/node_modules $(suite)-servers go -vet=off -count=1 -timeout 5m ./test/tools
	$(suite)-worker run node test/tools/worker.mjs dist
	$(suite) node test/tools/tools.mjs $(BIN) dist

e2e-whatsapp: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) ## WhatsApp on both hosts; the fake Graph API against a client of others
	$(suite)-fake node --test test/whatsapp/adapter.test.mjs
	$(BUILT) $(suite) go -vet=off -count=1 -timeout 10m ./test/channels -worker $(CURDIR)/dist

e2e-web: wasm build $(SUM) $(NODE_MODULES) $(TEST_MODULES) ## The page in a real Chromium, on both hosts (SHOTS=1: pictures)
	test/web/chromium.sh
	$(suite) node --test --test-concurrency=1 $(WEB_BOTH)
	HOSTS=$(WEB_HOSTS) $(suite)-native node --test --test-concurrency=1 $(filter-out %pure.test.mjs $(WEB_BOTH),$(wildcard test/web/*.test.mjs))

# The S3 client against a real server of the protocol.
e2e-s3: $(SUM)
	test/s3.sh -- $(suite) go -count=1 -run S3 ./host/native

race: ## Tests with the race detector (needs a C compiler)
	$(call with,native) env CGO_ENABLED=1 go test -race -timeout 30m

$(NODE_MODULES): build/package-lock.json
	npm ci --prefix build --ignore-scripts --no-audit --no-fund
	@touch $@

$(WEB_MODULES): web/package-lock.json
	npm ci --prefix web --ignore-scripts --no-audit --no-fund
	@touch $@

$(AGENT_MODULES): test/agents/package-lock.json
	npm ci --prefix test/agents --ignore-scripts --no-audit --no-fund
	@touch $@

.cache/web: $(shell find web/src -type f) build/web.go build/main.go go.mod $(WEB_MODULES)
	$(call title,the page)
	go run ./build web
	@mkdir -p $(@D) && touch $@

$(TEST_MODULES): test/package-lock.json
	npm ci --prefix test --ignore-scripts --no-audit --no-fund
	@touch $@

$(SUM): build/tools/gotestsum/go.mod build/tools/gotestsum/go.sum
	@mkdir -p $(@D)
	go build -C build/tools/gotestsum -o ../../../$@ gotest.tools/gotestsum
	@touch $@

$(LINT): build/tools/go.mod build/tools/go.sum
	@mkdir -p $(@D)
	go build -C build/tools -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

comma := ,
