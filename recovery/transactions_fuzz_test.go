package recovery

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Whatever arrives is refused, or a list that is the same once it is sent on.
func FuzzDecodeBatch(f *testing.F) {
	full := entry{flag: 1, Evidence: txn.Evidence{
		ID: txn.ID{Config: 3, Machine: 2, Worker: 1, Seq: 77}, Region: 5, Seen: txn.SeenLock,
		Regions: []region.ID{5, 6, 9}, At: txn.Extent{Key: 7, Off: 64, N: 100, Rest: 8, More: 16},
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
