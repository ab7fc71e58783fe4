package txn

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestMessageRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 500 {
		want := message{
			kind: messageKind(1 + rng.IntN(int(messageKinds)-1)), a: uint8(rng.Uint32()), b: uint16(rng.Uint32()),
			c: rng.Uint32(), tag: rng.Uint64(), body: make([]byte, rng.IntN(50)),
		}
		got, err := decodeMessage(append(want.header(nil), want.body...))
		if err != nil || got.kind != want.kind || got.a != want.a || got.b != want.b || got.c != want.c || got.tag != want.tag || !bytes.Equal(got.body, want.body) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add((&message{kind: messageLockReply}).header(nil))
	f.Add((&message{kind: messageKinds, a: 1, b: 2, c: 3, tag: 4}).header(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMessage(b)
		if err != nil {
			if !errors.Is(err, ErrBadMessage) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		if again := append(m.header(nil), m.body...); !bytes.Equal(again, b) {
			t.Fatalf("decoded %x\nencoded %x", b, again)
		}
	})
}

func TestNamesOfKinds(t *testing.T) {
	for k := messageKind(1); k < messageKinds; k++ {
		if k.String() == "" {
			t.Errorf("message kind %d has no name", k)
		}
	}
	for r := range reasons {
		if r.String() == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
	for s := Step(0); s <= steps; s++ {
		if s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
	}
}
