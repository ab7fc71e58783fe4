package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma/ring"
)

// A greeting of version 1 is what programs wrote before they said what they speak; from version 2
// on the version comes first, and another one is refused.
func TestGreetingVersions(t *testing.T) {
	var old []byte
	for _, word := range []uint64{9, 3, 7, 1 << 16, 64, 128, 8, 1 << 14, 0, 8} {
		old = binary.LittleEndian.AppendUint64(old, word)
	}
	g, err := DecodeGreeting(old, protocol.First)
	want := WorkerGreeting{Life: 3, Log: ring.State{Nonce: 7, Bytes: 1 << 16, Head: 64, Tail: 128}, Messages: ring.State{Nonce: 8, Bytes: 1 << 14, Tail: 8}}
	if err != nil || g.Epoch != 9 || len(g.Workers) != 1 || g.Workers[0] != want || !bytes.Equal(g.Append(nil, protocol.First), old) {
		t.Errorf("%+v, %v", g, err)
	}
	now := g.Append(nil, protocol.Ranges)
	if !bytes.Equal(now, append([]byte{2, 0, 0, 0, 0, 0, 0, 0}, old...)) {
		t.Errorf("%x", now)
	}
	if again, err := DecodeGreeting(now, protocol.Ranges); err != nil || again.Workers[0] != want {
		t.Errorf("%+v, %v", again, err)
	}
	for version, b := range map[protocol.Version][]byte{1: now, 2: old, 3: now} {
		if _, err := DecodeGreeting(b, version); !errors.Is(err, ErrBadGreeting) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if _, err := DecodeGreeting(now, 3); !strings.Contains(err.Error(), "of version 2 of the protocol, the two machines speak version 3") {
		t.Error(err)
	}
}

// Whatever arrives is refused, or a greeting that is the same once it is sent on.
func FuzzDecodeGreeting(f *testing.F) {
	s := ring.State{Nonce: 7, Bytes: 1 << 16, Head: 64, Tail: 128}
	for n := range 3 {
		g := Greeting{Epoch: 9}
		for i := range n {
			g.Workers = append(g.Workers, WorkerGreeting{Life: uint32(i), Log: s, Messages: s})
		}
		f.Add(g.Append(nil, protocol.First), uint8(protocol.First))
		f.Add(g.Append(nil, protocol.Ranges), uint8(protocol.Ranges))
	}
	f.Add([]byte{1, 2, 3}, uint8(protocol.First))
	f.Fuzz(func(t *testing.T, b []byte, v uint8) {
		version := protocol.Version(v)
		g, err := DecodeGreeting(b, version)
		if err != nil {
			if !errors.Is(err, ErrBadGreeting) {
				t.Fatal(err)
			}
			return
		}
		if again := g.Append(nil, version); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
