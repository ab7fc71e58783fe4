package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/region"
)

func class(t testing.TB, payload int) region.Class {
	c, ok := region.ClassFor(payload)
	if !ok {
		t.Fatal(payload)
	}
	return c
}

// randomRecord makes a record of any kind with whatever that kind may carry.
func randomRecord(t testing.TB, rng *rand.Rand) Record {
	r := Record{
		Kind:     Kind(1 + rng.IntN(int(Kinds)-1)),
		ID:       ID{Config: rng.Uint32(), Machine: 513, Worker: uint16(rng.Uint32()), Seq: rng.Uint64()},
		LowBound: rng.Uint64(),
	}
	for range rng.IntN(TruncatedMax + 1) {
		r.Truncated = append(r.Truncated, rng.Uint64())
	}
	if r.Kind != Lock && r.Kind != CommitBackup && r.Kind != Replicate {
		return r
	}
	for range 1 + rng.IntN(5) {
		r.Regions = append(r.Regions, region.ID(rng.Uint32()))
	}
	if r.Kind != Replicate && rng.IntN(4) == 0 {
		n := 1 + rng.Uint32N(100)
		r.Annex = Annex{Number: 1 + rng.Uint64N(AnnexNumberMax), Writes: n, Bytes: 8 * (uint64(n)*writeHeaderBytes/8 + rng.Uint64N(1000))}
		return r
	}
	for range 1 + rng.IntN(6) {
		c := class(t, 1+rng.IntN(3000))
		w := Write{
			Ptr:     region.MakePtr(region.MakeAddr(r.Regions[0], 64*(1+rng.Uint32N(1000))), c, rng.Uint64()>>8),
			Version: region.Version(rng.Uint64()) & region.VersionMax,
			Op:      Op(rng.IntN(int(writeOps))),
		}
		if w.Op != OpFree {
			w.Payload = make([]byte, c.Capacity())
			for i := range w.Payload {
				w.Payload[i] = byte(rng.Uint32())
			}
		}
		r.Writes = append(r.Writes, w)
	}
	return r
}

func TestRecordRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var got Record // used again and again: nothing of the last must stay
	for range 2000 {
		want := randomRecord(t, rng)
		b := Append([]byte("front"), &want)[5:]
		if len(b)%8 != 0 {
			t.Fatalf("%v is %d bytes long", want.Kind, len(b))
		}
		if err := Decode(b, &got); err != nil {
			t.Fatalf("%v: %v", want, err)
		}
		if got.Kind != want.Kind || got.ID != want.ID || got.LowBound != want.LowBound || !slices.Equal(got.Truncated, want.Truncated) ||
			!slices.Equal(got.Regions, want.Regions) || len(got.Writes) != len(want.Writes) || got.Annex != want.Annex {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		for i := range want.Writes {
			if !reflect.DeepEqual(got.Writes[i], want.Writes[i]) {
				t.Fatalf("write %d: got %+v, want %+v", i, got.Writes[i], want.Writes[i])
			}
		}
	}
}

// Commits compute the space that they reserve from sizes, not from encoded records.
func TestRecordSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		r := randomRecord(t, rng)
		want := HeaderBytes(len(r.Truncated), len(r.Regions))
		for i := range r.Writes {
			want += WriteBytes(&r.Writes[i])
		}
		if AnnexOf(Append(nil, &r)) != r.Annex.Number {
			t.Fatalf("annex of %+v", r)
		}
		if !r.Annex.IsNone() {
			want += AnnexedBytes
		} else if n := Bytes(&r); n != want {
			t.Fatalf("%v: %d bytes, computed %d", r.Kind, n, want)
		}
		if n := len(Append(nil, &r)); n != want {
			t.Fatalf("%v: %d bytes, computed %d", r.Kind, n, want)
		}
		if seq := SeqOf(Append(nil, &r)); seq != r.ID.Seq {
			t.Fatalf("sequence number %d, not %d", seq, r.ID.Seq)
		}
	}
}

// A record as commit af0a729 wrote it, which knew of no formats, is one of format 0. It is what is written today.
func TestFormat0(t *testing.T) {
	old := []byte{
		1, 0, 0, 0, 1, 0, 1, 1, // LOCK, one truncated, one region, one write
		4, 0, 3, 0, 2, 0, 0, 0, // configuration 2, machine 3, worker 4
		9, 0, 0, 0, 0, 0, 0, 0, // sequence
		5, 0, 0, 0, 0, 0, 0, 0, // low bound
		7, 0, 0, 0, 0, 0, 0, 0, // truncated
		3, 0, 0, 0, 0, 0, 0, 0, // region
	}
	p := region.MakePtr(region.MakeAddr(3, 640), class(t, 100), 5)
	old = p.Append(old)
	old = append(old, 6, 0, 0, 0, 0, 0, 0, 0x20) // freed at version 6
	var r Record
	if err := Decode(old, &r); err != nil {
		t.Fatal(err)
	}
	want := Record{Kind: Lock, ID: ID{Config: 2, Machine: 3, Worker: 4, Seq: 9}, LowBound: 5, Truncated: []uint64{7}, Regions: []region.ID{3}, Writes: []Write{{Ptr: p, Op: OpFree, Version: 6}}}
	if !reflect.DeepEqual(r, want) || !bytes.Equal(Append(nil, &r), old) {
		t.Errorf("%+v, %x", r, Append(nil, &r))
	}
	for format := byte(1); format < 8; format++ {
		newer := bytes.Clone(old)
		newer[7] |= format << kindBits
		if err := Decode(newer, &r); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), fmt.Sprintf("format %d, it reads formats up to 0: start this machine with a newer farmsql", format)) {
			t.Error(err)
		}
	}
	if errors.Is(Decode(old[:24], &r), ErrFormat) {
		t.Error("a record that is cut off counts as a newer one")
	}
}

// Every cut, and every bit that must be zero or makes no sense, is noticed.
func TestBadRecords(t *testing.T) {
	p := region.MakePtr(region.MakeAddr(3, 640), class(t, 100), 5)
	good := Record{Kind: Lock, ID: ID{1, 2, 3, 4}, Regions: []region.ID{3}, Writes: []Write{{Ptr: p, Version: 9, Payload: make([]byte, p.Capacity())}}}
	if p.Capacity()%8 == 0 {
		t.Fatal("no padding to test with")
	}
	b := Append(nil, &good)
	var r Record
	for n := range len(b) {
		if err := Decode(b[:n], &r); !errors.Is(err, ErrBad) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	at := func(off int, v byte) []byte { c := bytes.Clone(b); c[off] ^= v; return c }
	const regions, pointer = headerBytes, headerBytes + 8
	for name, bad := range map[string][]byte{
		"longer":              append(bytes.Clone(b), make([]byte, 8)...),
		"kind 0":              at(7, byte(Lock)),
		"unknown format":      at(7, 0x40),
		"unknown kind":        at(7, byte(Lock)^0x0e),
		"another kind":        at(7, byte(Lock^Truncate)),
		"one truncation more": at(6, 1),
		"two regions more":    at(4, 2),
		"no region":           at(4, 1),
		"one write more":      at(0, 2),
		"no write":            at(0, 1),
		"region padding":      at(regions+4, 1),
		"misaligned pointer":  at(pointer, 1),
		"larger class":        at(pointer+8, 0x80),
		"unknown op":          at(pointer+region.PtrBytes+7, 0x70),
		"payload padding":     at(len(b)-1, 1),
	} {
		if err := Decode(bad, &r); !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	null := Record{Kind: CommitBackup, Regions: []region.ID{1}, Writes: []Write{{Op: OpFree}}}
	if err := Decode(Append(nil, &null), &r); !errors.Is(err, ErrBad) {
		t.Errorf("write to nowhere: %v", err)
	}
}

// A record that names an annex says what can be, and only records with writes name one.
func TestBadAnnexes(t *testing.T) {
	good := Record{Kind: Lock, ID: ID{1, 2, 3, 4}, Regions: []region.ID{3}, Annex: Annex{Number: 5, Writes: 2, Bytes: 64}}
	var r Record
	if err := Decode(Append(nil, &good), &r); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Record){
		"another kind":     func(r *Record) { r.Kind = Replicate },
		"no writes":        func(r *Record) { r.Annex.Writes = 0 },
		"number too large": func(r *Record) { r.Annex.Number = AnnexNumberMax + 1 },
		"too large":        func(r *Record) { r.Annex.Bytes = AnnexBytesMax + 8 },
		"half a word":      func(r *Record) { r.Annex.Bytes = 65 },
		"too many writes":  func(r *Record) { r.Annex.Writes = 3 },
	} {
		bad := good
		change(&bad)
		if err := Decode(Append(nil, &bad), &r); !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := Append(nil, &good)
	for n := range len(b) {
		if err := Decode(b[:n], &r); !errors.Is(err, ErrBad) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestWriteAfter(t *testing.T) {
	p := region.MakePtr(64, class(t, 8), 7)
	for _, c := range []struct {
		op          Op
		allocated   bool
		incarnation uint64
	}{{OpUpdate, true, 7}, {OpAlloc, true, 7}, {OpFree, false, 8}} {
		w := Write{Ptr: p, Version: 41, Op: c.op}
		if v, allocated, incarnation := w.After(); v != 42 || allocated != c.allocated || incarnation != c.incarnation {
			t.Errorf("op %d: version %d, allocated %v, incarnation %d", c.op, v, allocated, incarnation)
		}
	}
}

// FuzzDecodeRecord: whatever is accepted is what encoding would have made.
func FuzzDecodeRecord(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 20 {
		r := randomRecord(f, rng)
		f.Add(Append(nil, &r))
	}
	f.Add([]byte{})
	f.Add(binary.LittleEndian.AppendUint64(nil, uint64(Lock)<<56|0xffff_ffff_ffff))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		if err := Decode(b, &r); err != nil {
			if !errors.Is(err, ErrBad) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		if again := Append(nil, &r); !bytes.Equal(again, b) {
			t.Fatalf("decoded %x\nencoded %x", b, again)
		}
	})
}

func TestNames(t *testing.T) {
	for k := Kind(0); k <= Kinds; k++ {
		if k.String() == "" && k != 0 {
			t.Errorf("record kind %d has no name", k)
		}
	}
	if got := (ID{1, 2, 3, 4}).String(); got != "1.2.3.4" {
		t.Error(got)
	}
}
