package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/farmsql/farmsql"
)

func TestUnready(t *testing.T) {
	for name, c := range map[string]struct {
		status farmsql.Status
		isOpen bool
		want   string
	}{
		"serving":     {farmsql.Status{}, true, ""},
		"with lease":  {farmsql.Status{Lease: &farmsql.LeaseStatus{IsValid: true}}, true, ""},
		"opening":     {farmsql.Status{}, false, "starting"},
		"waiting":     {farmsql.Status{Starting: "waits for machine 1"}, false, "starting: it waits for machine 1"},
		"no lease":    {farmsql.Status{Lease: &farmsql.LeaseStatus{}}, true, "not available: it holds no lease"},
		"no majority": {farmsql.Status{Unavailable: "no majority"}, true, "not available: no majority"},
		"evicted":     {farmsql.Status{Ended: "evicted"}, true, "no longer a member: evicted"},
	} {
		if got := unready(c.status, c.isOpen); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestHealth(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if _, _, err := serveHealth(l.Addr().String(), log); err == nil || !strings.Contains(err.Error(), "--http") {
		t.Errorf("an address in use: %v", err)
	}
	if _, _, err := serveHealth("192.0.2.1:80", log); err == nil || !strings.Contains(err.Error(), "--http") {
		t.Errorf("another host's address: %v", err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h, end, err := serveHealth(address, log)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string, status int, want string) {
		t.Helper()
		r, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != status || !strings.Contains(string(b), want) {
			t.Errorf("%s: %d %q, %v, want %d %q", path, r.StatusCode, b, err, status, want)
		}
	}
	get("/health", 200, "ok")
	get("/health?ready=1", 503, "starting")
	h.stopping.Store(true)
	get("/health?ready=1", 503, "stopping")
	get("/health", 200, "ok")
	get("/", 404, "")
	if err := end(); err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it still answers")
	}
	if _, end, err := serveHealth("", log); err != nil || !errors.Is(end(), nil) {
		t.Errorf("without an address: %v", err)
	}
}
