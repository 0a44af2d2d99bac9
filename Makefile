# One target for each habit. CI runs check and test; see .ci/run.
.DEFAULT_GOAL := help
export GOTOOLCHAIN ?= local

.PHONY: help
help: ## say what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## run a registry, three services, members of rpcx and live traffic on this machine
	$(MAKE) --no-print-directory build-command
	cd examples/coming && GOWORK=off go build -o ../../bin/anser-demo-rpcx ./rpcx/member
	bin/anser demo

.PHONY: build-command
build-command: ## build bin/anser
	go build -o bin/anser ./cmd/anser

.PHONY: build
build: ## compile every module
	go build $$(go list -m -f '{{.Dir}}/...')

.PHONY: test
test: ## run all tests of every module under the race detector; CPU=1,2,4 repeats them with each number of processors
	@CPU='$(CPU)' scripts/test

.PHONY: test-k8s
test-k8s: ## run the tests of registry/kubernetes on a real API server, which is built once
	scripts/servers kubernetes
	ANSER_TEST_KUBERNETES=1 go -C registry/kubernetes test -race -shuffle=on -count=1 -timeout 20m ./...

.PHONY: badinput
badinput: ## send malformed input to a server and a client, row by row
	@bash -o pipefail -c "go test -p 1 -count=1 -v ./internal/test/badinput ./internal/test/protocols/badinput | grep -E '^( *--- FAIL|FAIL|ok|[0-9]+ (rows|KiB))' | \
		awk '{ print } /^[0-9]+ rows/ { all += \$$1; held += \$$3 } END { print all, \"rows,\", held, \"held in all\" }'"

.PHONY: fuzz
fuzz: ## run every fuzz target for a while; TIME (30s) and FUZZ (a regular expression) choose
	@TIME='$(TIME)' FUZZ='$(value FUZZ)' scripts/fuzz

.PHONY: test-fast
test-fast: ## run the tests of the core but for the longest, without the race detector and without services
	@bash -c 'source scripts/lib.sh; go test -short -p "$$(parallel)" ./...'

.PHONY: quick
quick: ## format, vet and test what has changed since main and what imports it, without services; BASE names another commit
	@BASE='$(BASE)' scripts/quick

.PHONY: check
check: ## format, vet, staticcheck, nits, unparam, other platforms, tidiness, generated code; PEERS=all has the peers of the arena that have not changed, too
	scripts/check

.PHONY: cross
cross: ## vet every module for Linux, macOS and Windows
	scripts/cross

.PHONY: fmt
fmt: ## format the code
	@bash -c 'source scripts/lib.sh; tools; written | xargs -r bin/gofumpt -w'

.PHONY: deps
deps: ## require the highest version in use of each dependency in every module, and tidy all modules
	@bash -c "source scripts/lib.sh; tools; files '*go.mod' | xargs bin/versions -apply"

.PHONY: soak
soak: ## call servers that come and go for FOR (1h), and look for wrong replies and leaks
	go run ./e2e/soak --for $(or $(FOR),1h)
	go run -race ./e2e/soak --cancel --calls $(or $(CALLS),10000000)

.PHONY: sbom
sbom: ## write what every module is built from, as CycloneDX, into bin/sbom
	scripts/sbom

.PHONY: release
release: ## make the commit and the tags of VERSION, such as v0.1.0; FLAGS=-dry-run only says what it would do
	@GOWORK=off go -C internal/release run . -repo '$(CURDIR)' -version '$(VERSION)' $(FLAGS)

.PHONY: generate
generate: ## renew what is generated
	scripts/generate

.PHONY: pictures
pictures: ## make the pictures of pages and terminals in docs/images again, from a demo; ONLY chooses some, such as top
	scripts/pictures $(ONLY)

.PHONY: looks
looks: ## make screenshots of all pages in bin/looks, light and dark, 390 to 2,560 px; ONLY="console: login" chooses, AXE=1 runs axe
	AXE='$(AXE)' scripts/looks $(if $(ONLY),'$(ONLY)')

.PHONY: fluid
fluid: ## measure the frames of the console's pages in Chromium, next to an empty page; see scripts/fluid
	scripts/fluid

.PHONY: arena
arena: ## compare RPC frameworks on this machine, and write the report bin/arena.html
	go run ./arena run --suite quick --json bin/arena.json
	go run ./arena report bin/arena.json --html bin/arena.html

.PHONY: faults
faults: ## play faults for an hour and a half, as root for those that need hosts, and renew docs/reliability.md; FLAGS adds flags, such as --peers for grpc-go and rpcx
	go run ./e2e/faults --into docs/reliability.json $(FLAGS)

.PHONY: bench
bench: ## run the benchmarks; BENCH, TIME and COUNT choose
	BENCH='$(BENCH)' TIME='$(TIME)' COUNT='$(COUNT)' scripts/bench
