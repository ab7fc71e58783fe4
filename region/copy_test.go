package region

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// newBackup returns an empty replica with r's block table: a new backup to which the primary has
// sent the table.
func newBackup(t testing.TB, r *Region) *Region {
	t.Helper()
	b := newRegion(t, r.ID(), int64(r.Size()))
	off, n := r.Table()
	table := make([]byte, n)
	r.Memory().CopyOut(table, off)
	b.Memory().CopyIn(off, table)
	return b
}

// pull reads every piece once and returns those that have to be read again.
func pull(to, from *Region, pieces []Piece) (again []Piece) {
	for _, p := range pieces {
		raw := make([]byte, p.Bytes)
		from.Memory().CopyOut(raw, p.Offset)
		if !to.Take(p, raw) {
			again = append(again, p)
		}
	}
	return again
}

func allPieces(r *Region, n int) (pieces []Piece) {
	for p := range r.Pieces(n) {
		pieces = append(pieces, p)
	}
	return pieces
}

// filled returns a region with objects of several classes, some of them freed.
func filled(t testing.TB, rng *rand.Rand) (*Region, []Ptr) {
	r := newRegion(t, 3, MinSize)
	a := NewAllocator(AllocatorConfig{Workers: 1})
	a.Add(r)
	var ptrs []Ptr
	for range 400 {
		p, v, _, err := a.Alloc(Ordinary, 0, 1+rng.IntN(1<<rng.IntN(15)), 0)
		if err != nil {
			break
		}
		mustLock(t, r, p, v)
		r.Write(p, payloadOf(p.Class(), rng.Uint64()), v+1, true, p.Incarnation())
		if rng.IntN(4) == 0 {
			mustLock(t, r, p, v+1)
			r.Write(p, nil, v+2, false, p.Incarnation()+1)
			continue
		}
		ptrs = append(ptrs, p)
	}
	return r, ptrs
}

// equal compares the state of every slot at two replicas.
func equal(a, b *Region) error {
	other := make(map[Addr]Ptr)
	headers := make(map[Addr]Header)
	for p, h := range b.Objects {
		other[p.Addr], headers[p.Addr] = p, h
	}
	n := 0
	for p, h := range a.Objects {
		n++
		if headers[p.Addr] != h || other[p.Addr] != p {
			return fmt.Errorf("%v is %v here and %v, %v there", p, h, other[p.Addr], headers[p.Addr])
		}
		if !h.Allocated() {
			continue
		}
		x, y := make([]byte, p.Capacity()), make([]byte, p.Capacity())
		if _, err := a.ReadObject(p, x); err != nil {
			return err
		}
		if _, err := b.ReadObject(p, y); err != nil {
			return err
		}
		if !bytes.Equal(x, y) {
			return fmt.Errorf("payloads of %v differ", p)
		}
	}
	if n != len(other) {
		return fmt.Errorf("%d slots here, %d there", n, len(other))
	}
	return nil
}

func TestCopyToNewBackup(t *testing.T) {
	for seed := range uint64(4) {
		from, ptrs := filled(t, rand.New(rand.NewPCG(seed, 1)))
		to := newBackup(t, from)
		pieces := allPieces(from, 8<<10)
		covered := 0
		for _, p := range pieces {
			covered += p.Bytes
			if p.Bytes > 8<<10 && p.Bytes != p.slab.class.Size() {
				t.Fatalf("piece of %d bytes in a slab of %d", p.Bytes, p.slab.class.Size())
			}
		}
		if covered == 0 {
			t.Fatal("no pieces")
		}
		if again := pull(to, from, pieces); len(again) != 0 {
			t.Fatalf("%d of %d pieces again", len(again), len(pieces))
		}
		if err := equal(from, to); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if faults := to.Check(slices.Values(ptrs)); len(faults) != 0 {
			t.Fatalf("seed %d: %v", seed, faults)
		}
	}
}

// SOSP'15 section 5.4: "Each recovered object must be examined before being
// copied to the backup. If the object has a version greater than the local
// version, the backup ... updates the object state ...; otherwise, the object is
// already updated".
func TestPaper5_4_NewerStateStays(t *testing.T) {
	from := newRegion(t, 3, MinSize)
	p := newObject(t, from, 5)
	mustLock(t, from, p, 0)
	from.Write(p, payloadOf(p.Class(), 1), 1, true, 0)
	to := newBackup(t, from)
	pieces := allPieces(from, 8<<10)
	raws := make([][]byte, len(pieces))
	for i, piece := range pieces {
		raws[i] = make([]byte, piece.Bytes)
		from.Memory().CopyOut(raws[i], piece.Offset)
	}
	// A transaction commits between the read and its arrival.
	want := payloadOf(p.Class(), 2)
	if !to.ApplyBackup(p, want, 2, true, 0) {
		t.Fatal("backup refuses a write")
	}
	for i, piece := range pieces {
		if !to.Take(piece, raws[i]) {
			t.Fatal("piece has to be read again")
		}
	}
	got := make([]byte, p.Capacity())
	if h, err := to.ReadObject(p, got); err != nil || h.Version() != 2 || !bytes.Equal(got, want) {
		t.Fatalf("%v, %v, equal %v", h, err, bytes.Equal(got, want))
	}
}

// An object that is locked or torn is read again, and nothing of it is taken.
func TestTakeOfWhatChanges(t *testing.T) {
	for name, spoil := range map[string]func(r *Region, p Ptr){
		"locked": func(r *Region, p Ptr) { mustLock(t, r, p, 1) },
		"torn": func(r *Region, p Ptr) {
			off := uint64(p.Addr.Offset()) + lineBytes
			r.m.Store(off, r.m.Load(off)^writingMark)
		},
	} {
		from := newRegion(t, 3, MinSize)
		p := newObject(t, from, 5)
		mustLock(t, from, p, 0)
		from.Write(p, payloadOf(p.Class(), 1), 1, true, 0)
		to := newBackup(t, from)
		before := nvram.NewMemory(int64(from.Size()))
		raw := make([]byte, from.Size())
		from.Memory().CopyOut(raw, 0)
		before.CopyIn(0, raw)

		spoil(from, p)
		again := pull(to, from, allPieces(from, 8<<10))
		if len(again) != 1 {
			t.Fatalf("%s: %d pieces again", name, len(again))
		}
		if h := to.Header(p.Addr.Offset()); h != 0 {
			t.Fatalf("%s: backup has %v", name, h)
		}
		from.Memory().CopyIn(0, raw)
		if again = pull(to, from, again); len(again) != 0 {
			t.Fatalf("%s: again although quiet", name)
		}
		if err := equal(from, to); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
