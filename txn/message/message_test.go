package message

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestMessageRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 500 {
		want := Message{
			Kind: Kind(1 + rng.IntN(int(kinds)-1)), A: uint8(rng.Uint32()), B: uint16(rng.Uint32()),
			C: rng.Uint32(), Tag: rng.Uint64(), Body: make([]byte, rng.IntN(50)),
		}
		got, err := Decode(append(want.AppendHeader(nil), want.Body...))
		if err != nil || got.Kind != want.Kind || got.A != want.A || got.B != want.B || got.C != want.C || got.Tag != want.Tag || !bytes.Equal(got.Body, want.Body) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add((&Message{Kind: LockReply}).AppendHeader(nil))
	f.Add((&Message{Kind: kinds, A: 1, B: 2, C: 3, Tag: 4}).AppendHeader(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrBad) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		if again := append(m.AppendHeader(nil), m.Body...); !bytes.Equal(again, b) {
			t.Fatalf("decoded %x\nencoded %x", b, again)
		}
	})
}

func TestNamesOfKinds(t *testing.T) {
	for k := Kind(1); k < kinds; k++ {
		if k.String() == "" {
			t.Errorf("message kind %d has no name", k)
		}
	}
}
