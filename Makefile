# make demo    the incident, caught, in one process; needs Go and nothing else
# make test    vet, all tests under the race detector, the official client SDKs
#              (a module of its own, e2e/sdk), and the built demo
# make race    the tests alone, under the race detector
# make fuzz    every fuzz target for FUZZTIME each
# make lint    golangci-lint, fetched and built at its pinned version if missing
# make bench   Go benchmarks, BENCHCOUNT runs each, ready for benchstat

GO ?= go
FUZZTIME ?= 20s
BENCHCOUNT ?= 5
GOLANGCI_VERSION = v2.15.0
BIN = $(CURDIR)/bin

.PHONY: all build demo test race fuzz lint bench clean

all: build

build:
	$(GO) build -o $(BIN)/auditproxy ./cmd/auditproxy

demo: build
	$(BIN)/auditproxy demo $(DEMOFLAGS)

test:
	@test -z "$$(gofmt -l .)" || { echo "gofmt these files:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) test -race -timeout 12m ./...
	cd e2e/sdk && $(GO) vet ./... && $(GO) test -timeout 5m ./...
	$(MAKE) demo DEMOFLAGS="--once --quiet"

race:
	$(GO) test -race -timeout 12m ./...

fuzz:
	@set -e; $(GO) list -f '{{.Dir}}' ./... | while read -r dir; do \
	  grep -hoE '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go 2>/dev/null | sed 's/^func //' | while read -r f; do \
	    echo "== $$dir $$f"; (cd $$dir && $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) .); \
	  done; done

$(BIN)/golangci-lint-$(GOLANGCI_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

lint: $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
	$< run ./...

bench:
	$(GO) test -tags peers -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) ./...

clean:
	rm -rf $(BIN)
