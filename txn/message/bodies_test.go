package message

import (
	"bytes"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/region"
)

// Arguments and replies are decoded as they were encoded, and other lengths are refused.
func TestBodies(t *testing.T) {
	ptr := region.MakePtr(region.MakeAddr(2, 0x440), 10, 3)
	check := func(name string, b []byte, decode func([]byte) (any, error), want any) {
		t.Helper()
		if got, err := decode(b); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
		for _, other := range [][]byte{nil, b[:len(b)-1], append(b[:len(b):len(b)], 0)} {
			if _, err := decode(other); !errors.Is(err, ErrBad) {
				t.Errorf("%s of %d bytes: %v", name, len(other), err)
			}
		}
	}
	a := Allocation{Hint: ptr.Addr, Need: region.ToFree, Payload: 1000, Machine: 7, Worker: 3, Connection: 9}
	check("allocation", a.Encode(), func(b []byte) (any, error) { return DecodeAllocation(b) }, a)
	s := Slot{Ptr: ptr, Version: 1 << 40, Config: 12}
	check("slot", s.Encode(), func(b []byte) (any, error) { return DecodeSlot(b) }, s)
	x := AnnexRequest{Sender: 7, Worker: 3, Connection: 9, Bytes: 1 << 40, Number: 77}
	check("annex", x.Encode(), func(b []byte) (any, error) { return DecodeAnnexRequest(b) }, x)
	r := Reservation{Region: 5, Off: 1 << 20, Bytes: 1 << 30}
	check("reservation", r.Encode(), func(b []byte) (any, error) { return DecodeReservation(b) }, r)
	d := Discard{Region: 5, Off: 1 << 20, Bytes: 1 << 30, In: 12, Primary: 7}
	check("discard", d.Encode(), func(b []byte) (any, error) { return DecodeDiscard(b) }, d)

	back := Release{Ptr: ptr, Config: 12}
	check("release", back.Encode(protocol.Handovers), func(b []byte) (any, error) { return DecodeRelease(b) }, back)
	check("release to an earlier program", back.Encode(protocol.Moves), func(b []byte) (any, error) { return DecodeRelease(b) }, Release{Ptr: ptr})
	if _, err := DecodeRelease(bytes.Repeat([]byte{0xff}, releaseBytes)); !errors.Is(err, region.ErrBadPtr) {
		t.Errorf("release of no pointer: %v", err)
	}

	b := r.Encode()
	b[7] = 1 // no region has such a number
	if _, err := DecodeReservation(b); !errors.Is(err, ErrBad) {
		t.Errorf("reservation in a region that cannot be: %v", err)
	}
}
