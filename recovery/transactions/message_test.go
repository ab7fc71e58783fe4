package transactions

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/record"
)

// Whatever arrives is refused, or a list that is the same once it is sent on.
func FuzzDecodeBatch(f *testing.F) {
	full := entry{flag: 1, Evidence: evidence.Evidence{
		ID: record.ID{Config: 3, Machine: 2, Worker: 1, Seq: 77}, Region: 5, Seen: evidence.SeenLock,
		Regions: []region.ID{5, 6, 9}, At: evidence.Extent{Key: 7, Off: 64, N: 100, Rest: 8, More: 16},
	}}
	for _, list := range [][]entry{nil, {full}, {full, {}, full}} {
		for _, b := range batches(4, list) {
			f.Add(b)
		}
	}
	f.Add([]byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		id, list, last, err := decodeBatch(b)
		if err != nil {
			return
		}
		again := header(id, last)
		for i := range list {
			again = appendEntry(again, &list[i])
		}
		id2, list2, last2, err := decodeBatch(again)
		if err != nil || id2 != id || last2 != last || !reflect.DeepEqual(list2, list) {
			t.Fatalf("%v %v %v became %v %v %v: %v", id, list, last, id2, list2, last2, err)
		}
		if !bytes.Equal(again[argumentHeaderBytes:], b[argumentHeaderBytes:]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

// The list of DECIDED arrives unchanged, wherever batches split it.
func TestBoundEntries(t *testing.T) {
	const life = 5 << 44
	sent := []evidence.Bound{
		{Machine: 1, Worker: 2, Low: life + 9, Named: []uint64{life + 12, life + 10}},
		{Machine: 1, Worker: 2, Low: 2*life + 1},
		{Machine: 4, Worker: 0, Low: life + 1, Named: []uint64{life + 3}},
	}
	list := boundEntries(sent)
	if len(list) != 6 {
		t.Fatalf("%d entries", len(list))
	}
	var got []evidence.Bound
	for _, e := range list { // each by itself
		got = append(got, boundsOf([]entry{e})...)
	}
	want := []evidence.Bound{
		{Machine: 1, Worker: 2, Low: life + 9}, evidence.NamedBound(1, 2, life+12), evidence.NamedBound(1, 2, life+10),
		{Machine: 1, Worker: 2, Low: 2*life + 1}, {Machine: 4, Low: life + 1}, evidence.NamedBound(4, 0, life+3),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
