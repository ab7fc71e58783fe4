package main

import (
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestConnectionsUnder(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, nil))
	if n, err := connectionsUnder(4096, 1000, true, slog.New(slog.NewTextHandler(io.Discard, nil))); n != 1000 || err != nil {
		t.Error(n, err)
	}
	if n, err := connectionsUnder(100, 1000, false, log); n != 33 || err != nil || !strings.Contains(b.String(), "limit=100") {
		t.Error(n, err, b.String())
	}
	if _, err := connectionsUnder(24, 1000, false, log); err == nil || !strings.Contains(err.Error(), "ulimit -n 2033") {
		t.Error(err)
	}
}
