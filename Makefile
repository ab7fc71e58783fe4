# Everything here is a plain go command; the tag gms_pure_go keeps
# go-mysql-server from needing the C library ICU.
TAGS   := gms_pure_go
GO     ?= go
GOTEST ?= $(GO) test

.PHONY: help serve test race lint bench build release profile clean

help: ## say what there is to make, as make alone does
	@sed -n 's/^\([a-z]*\):.*## /\1: /p' $(MAKEFILE_LIST)

# The program itself, not go run: it gets the signals that make gets.
serve: ## start the database: data in ./farmsql-data, MySQL clients on 127.0.0.1:3306
	$(GO) build -tags $(TAGS) -o bin/farmsql ./cmd/farmsql
	bin/farmsql serve

# All tests. go test says nothing of what it skips, so this does; .ci/run lists every
# test that skips itself, with gotestsum for GOTEST. ./test comes first: it takes longest, mostly
# by waiting, so that others run meanwhile.
test: ## run go vet and all tests
	@for p in mariadb sysbench mariadb-install-db; do command -v $$p >/dev/null || echo "skipping the tests with $$p, which is not installed"; done
	$(GO) vet -tags $(TAGS) ./...
	$(GOTEST) -tags $(TAGS) -timeout 20m ./test ./...

# Race builds keep regions on the Go heap, whose size the skipped test limits.
race: ## run them under the race detector
	$(GO) test -race -tags $(TAGS) -timeout 20m -skip '^TestHeapStaysSmall$$' ./...

build: ## build bin/farmsql, and bin/farmsql-bench, which farmsql bench starts
	$(GO) build -tags $(TAGS) -o bin/ ./cmd/farmsql ./cmd/farmsql-bench

release: ## build bin/farmsql without what debuggers need
	$(GO) build -tags $(TAGS) -trimpath -ldflags "-s -w" -o bin/farmsql ./cmd/farmsql

# The profile that go build optimises the program by: of the work that it is for.
# Takes two minutes, and means most where nothing else runs.
profile: build ## make cmd/farmsql/default.pgo anew, by which go build optimises: two minutes
	@tmp=$$(mktemp -d) && b="$(CURDIR)/bin/farmsql bench" && run() { echo "$$@"; "$$@" >/dev/null || exit 1; } && \
	run $$b tpcc --workers 1 --duration 8s --seed 1 --profile $$tmp/tpcc && \
	run $$b tatp --workers 1 --subscribers 200000 --duration 6s --seed 1 --profile $$tmp/tatp && \
	run $$b kv --duration 5s --seed 1 --profile $$tmp/kv && \
	run $$b kv --duration 5s --seed 1 --batch 32 --profile $$tmp/batch && \
	run $$b tatp --api sql --threads 2 --subscribers 20000 --duration 8s --seed 1 --profile $$tmp/sql && \
	run $$b tpcc --api sql --duration 8s --seed 1 --profile $$tmp/sqltpcc && \
	run $$b tatp --machines 3 --replicas 3 --transport shm --workers 1 --subscribers 20000 --duration 5s --seed 1 --profile $$tmp/shm && \
	run $$b tpcc --machines 3 --replicas 3 --transport shm --workers 1 --warehouses 3 --duration 5s --seed 1 --profile $$tmp/shmtpcc && \
	$(GO) tool pprof -proto $$tmp/tpcc $$tmp/tatp $$tmp/kv $$tmp/batch $$tmp/sql $$tmp/sqltpcc $$tmp/shm.0 $$tmp/shmtpcc.0 >cmd/farmsql/default.pgo; \
	status=$$?; rm -rf $$tmp; exit $$status

bench: ## run all benchmarks of the packages
	$(GO) test -tags $(TAGS) -run '^$$' -bench . ./...

lint: ## run gofmt, vet and staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	$(GO) vet -tags $(TAGS) ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags $(TAGS) ./...

clean: ## remove bin
	rm -rf bin
