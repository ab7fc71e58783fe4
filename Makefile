# Everything here is a plain go command; the tag gms_pure_go keeps
# go-mysql-server from needing the C library ICU.
TAGS := gms_pure_go
GO   ?= go

.PHONY: serve test race lint bench build clean

# Start the database: data in ./farmsql-data, MySQL clients on 127.0.0.1:3306.
# The program itself, not go run: it gets the signals that make gets.
serve: build
	bin/farmsql serve

# All tests. go test says nothing of what it skips, so this does.
test:
	@for p in mariadb sysbench mariadb-install-db; do command -v $$p >/dev/null || echo "skipping the tests with $$p, which is not installed"; done
	$(GO) vet -tags $(TAGS) ./...
	$(GO) test -tags $(TAGS) ./...

# Race builds keep regions on the Go heap, whose size the skipped test limits.
race:
	$(GO) test -race -tags $(TAGS) -timeout 20m -skip '^TestHeapStaysSmall$$' ./...

build:
	$(GO) build -tags $(TAGS) -o bin/farmsql ./cmd/farmsql

bench:
	$(GO) test -tags $(TAGS) -run '^$$' -bench . ./...

lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	$(GO) vet -tags $(TAGS) ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags $(TAGS) ./...

clean:
	rm -rf bin
