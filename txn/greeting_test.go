package txn

import (
	"bytes"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/rdma/ring"
)

// Whatever arrives is refused, or a greeting that is the same once it is sent on.
func FuzzDecodeGreeting(f *testing.F) {
	s := ring.State{Nonce: 7, Bytes: 1 << 16, Head: 64, Tail: 128}
	for n := range 3 {
		g := Greeting{epoch: 9}
		for i := range n {
			g.workers = append(g.workers, greeting{life: uint32(i), log: s, messages: s})
		}
		f.Add(g.Append(nil))
	}
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodeGreeting(b)
		if err != nil {
			if !errors.Is(err, errBadGreeting) {
				t.Fatal(err)
			}
			return
		}
		if again := g.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
