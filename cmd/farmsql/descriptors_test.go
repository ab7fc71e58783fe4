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
	small := layout{machines: 1, peers: 1, workers: 2}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if n, err := connectionsUnder(4096, 1000, layout{machines: 1, peers: 3, workers: 2, isCluster: true}, quiet); n != 1000 || err != nil {
		t.Error(n, err)
	}
	if n, err := connectionsUnder(200, 1000, small, log); n != 32 || err != nil || !strings.Contains(b.String(), "limit=200") {
		t.Error(n, err, b.String())
	}
	if _, err := connectionsUnder(24, 1000, small, log); err == nil || !strings.Contains(err.Error(), "ulimit -n 2135") {
		t.Error(err)
	}
}

// Each worker has files for each machine of the instance.
func TestDescriptorsOfWorkers(t *testing.T) {
	for _, c := range []struct {
		name string
		layout
		want uint64
	}{
		{"one machine", layout{machines: 1, peers: 1, workers: 64}, 128 + 3*64},
		{"three in one process", layout{machines: 3, peers: 3, workers: 64}, 128 + 3*3*3*64},
		{"one of a cluster, which others can join", layout{machines: 1, peers: 3, workers: 64, isCluster: true}, 128 + 3*16 + 3*16*64},
		{"over TCP", layout{machines: 1, peers: 3, workers: 4, isCluster: true, isTCP: true}, 128 + 3*16 + 3*16*4 + 2*5*16},
		{"with cards", layout{machines: 1, peers: 3, workers: 4, isCluster: true, isTCP: true, isVerbs: true}, 128 + 3*16 + 3*16*4 + 2*5*16 + 5*(16+2)},
		{"one of a large cluster", layout{machines: 1, peers: 20, workers: 64, isCluster: true}, 128 + 3*20 + 3*20*64},
	} {
		if got := c.descriptors(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if n, err := connectionsUnder(1024, 1000, layout{machines: 1, peers: 1, workers: 64}, slog.New(slog.DiscardHandler)); n != 351 || err != nil {
		t.Error(n, err)
	}
}
