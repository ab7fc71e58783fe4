package record

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/region"
)

// Bytes that are no writes are refused, wherever they end.
func TestBadAnnexBodies(t *testing.T) {
	var body []byte
	for _, id := range []region.ID{2, 3} {
		p := region.MakePtr(region.MakeAddr(id, 0x440), 10, 0)
		body = AppendWrite(body, &Write{Ptr: p, Op: OpUpdate, Version: 1, Payload: make([]byte, p.Capacity())})
	}
	x := &Annex{Number: 77, Writes: 2, Bytes: uint64(len(body))}
	if _, err := AnnexWrites(x, body); err != nil {
		t.Fatal(err)
	}
	for n := 8; n < len(body); n += 8 {
		if _, err := AnnexWrites(x, body[:n]); !errors.Is(err, ErrBad) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if _, err := WritesIn(body[:n]); !errors.Is(err, ErrBad) && n != len(body)/2 {
			t.Errorf("part of %d bytes: %v", n, err)
		}
	}
	if _, err := AnnexWrites(x, append(body, make([]byte, 8)...)); !errors.Is(err, ErrBad) {
		t.Errorf("too much: %v", err)
	}
}
