package txn

import (
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/internal/prefetch"
)

// TestLines pins that what transactions of all processors write is a Pad apart from what each of
// them reads when it begins, and what they count from what others count.
func TestLines(t *testing.T) {
	const apart = 2 * prefetch.LineBytes
	of := func(v any, name string) reflect.StructField {
		f, ok := reflect.TypeOf(v).FieldByName(name)
		if !ok {
			t.Fatalf("%T has no field %s", v, name)
		}
		return f
	}
	frees := of(Machine{}, "frees").Offset
	for _, name := range []string{"states", "txs", "counts", "logBytes", "writeBytesMax"} {
		if f := of(Machine{}, name); frees < f.Offset+f.Type.Size()+apart {
			t.Errorf("%s is at %d, frees at %d", name, f.Offset, frees)
		}
	}
	last := of(counts{}, "aborts")
	if begin, end := of(counts{}, "commits").Offset, last.Offset+last.Type.Size(); begin < apart || reflect.TypeFor[counts]().Size() < end+apart {
		t.Errorf("counts are from %d to %d of %d", begin, end, reflect.TypeFor[counts]().Size())
	}
}
