package verbs

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// pinned returns which pieces of the memory of a machine its card knows.
func (m *machine) pinned() (is []bool) {
	m.NIC.mu.Lock()
	r := m.NIC.mu.regions[key]
	m.NIC.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.mu.pieces {
		is = append(is, p != nil)
	}
	return is
}

func (m *machine) hasPinned(what, want string) {
	m.t.Helper()
	got := ""
	for _, is := range m.pinned() {
		got += map[bool]string{false: ".", true: "x"}[is]
	}
	if got != want {
		m.t.Errorf("%s: pieces %s are pinned, want %s", what, got, want)
	}
}

// TestPieces: a card pins the first piece of a registration, and others when another machine uses them, also those of one
// operation; what is outside of the memory pins nothing.
func TestPieces(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a, b := f.machine(t, 1, 1<<12), f.machine(t, 2, 6*pieceBytes-1<<12)
	b.hasPinned("at first", "x.....")
	if err := a.write(2, 2*pieceBytes, 1); err != nil {
		t.Fatal(err)
	}
	b.hasPinned("after a write", "x.x...")
	if err := a.write(2, 4*pieceBytes-8, 1<<14); err != nil {
		t.Fatal(err)
	}
	b.hasPinned("after a write to two", "x.xxx.")
	if err := a.write(2, b.memory.Size()-8, 1); err != nil {
		t.Fatal(err)
	}
	for _, off := range []uint64{b.memory.Size(), b.memory.Size() - 8, 1 << 60} {
		if err := a.write(2, off, 2); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("at %#x: %v", off, err)
		}
	}
	b.hasPinned("after what lies outside", "x.xxxx")
	c := f.machine(t, 3, 1<<12)
	for _, off := range []uint64{1 << 60, b.memory.Size()} {
		if err := c.write(2, off, 1); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("of a machine that knows nothing, at %#x: %v", off, err)
		}
	}
	b.hasPinned("after that of a stranger", "x.xxxx")
}

// TestDiscardOfWhatIsPinned: memory that is given back is cleared, and stays the memory that the card knows, until the registration ends.
func TestDiscardOfWhatIsPinned(t *testing.T) {
	needsMapping(t)
	b := discardOfWhatIsPinned(t, newFabric(t))
	storage := new(freed)
	b.memory.Keep(storage)
	b.memory.Discard(0, b.memory.Size())
	if storage.bytes != pieceBytes {
		t.Errorf("%d bytes are freed, want those of the piece that is not pinned", storage.bytes)
	}
	b.Deregister(key)
	b.memory.Discard(0, b.memory.Size())
	if storage.bytes != 4*pieceBytes {
		t.Errorf("%d bytes are freed in all, want the rest, too", storage.bytes)
	}
}

// discardOfWhatIsPinned gives memory back whose first and last piece are pinned, and returns its machine.
func discardOfWhatIsPinned(t *testing.T, f *fabric) *machine {
	a, b := f.machine(t, 1, 1<<12), f.machine(t, 2, 3*pieceBytes)
	word := []byte{7, 0, 0, 0, 0, 0, 0, 0}
	write := func() {
		t.Helper()
		if _, err := a.q.Write(2, key, 2*pieceBytes, word, 1); err != nil {
			t.Fatal(err)
		}
		if err := a.wait(1); err != nil {
			t.Fatal(err)
		}
	}
	write()
	b.memory.Discard(0, b.memory.Size())
	if got := b.memory.Load(2 * pieceBytes); got != 0 {
		t.Errorf("after Discard the word is %d", got)
	}
	write()
	if got := b.memory.Load(2 * pieceBytes); got != 7 {
		t.Errorf("after a write the word is %d", got)
	}
	return b
}

// freed is a file system that notes how much it is given back.
type freed struct{ bytes uint64 }

func (f *freed) Reserve(uint64, uint64) error { return nil }
func (f *freed) Discard(_, n uint64)          { f.bytes += n }

// TestUnpinned: a piece that the card cannot pin breaks the connection, with a reason at both ends, and is tried again.
func TestUnpinned(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a := f.machine(t, 1, 1<<12)
	var mu sync.Mutex
	var reasons []error
	f.change = func(cfg *Config) {
		cfg.Unpinned = func(reason error) { mu.Lock(); defer mu.Unlock(); reasons = append(reasons, reason) }
	}
	b := f.machine(t, 2, 3*pieceBytes)
	if err := a.write(2, 0, 1); err != nil {
		t.Fatal(err)
	}
	f.wire.refuse("register", syscall.ENOMEM)
	err := a.write(2, pieceBytes, 1)
	if !errors.Is(err, errUnpinned) || !errors.Is(err, rdma.ErrBroken) || !strings.Contains(err.Error(), "its log says why") {
		t.Errorf("%v, want %v", err, errUnpinned)
	}
	mu.Lock()
	if len(reasons) != 1 || !errors.Is(reasons[0], syscall.ENOMEM) {
		t.Errorf("the machine is told %v", reasons)
	}
	mu.Unlock()
	f.wire.refuse("register", nil)
	eventually(t, "the piece is pinned", func() bool { return a.write(2, pieceBytes, 1) == nil })
	b.hasPinned("at last", "xx.")
	b.memory.Keep(full{})
	if err := a.write(2, 2*pieceBytes, 1); !errors.Is(err, errUnpinned) {
		t.Errorf("on a full file system: %v, want %v", err, errUnpinned)
	}
}

// full is a file system without room.
type full struct{}

func (full) Reserve(uint64, uint64) error { return nvram.ErrNoSpace }
func (full) Discard(uint64, uint64)       {}

// TestRegistrationEnds: after Deregister a key has no pieces, and may be another memory's.
func TestRegistrationEnds(t *testing.T) {
	needsMapping(t)
	f := newFabric(t)
	a, b := f.machine(t, 1, 1<<12), f.machine(t, 2, pieceBytes)
	if err := a.write(2, 0, 1); err != nil {
		t.Fatal(err)
	}
	b.Deregister(key)
	eventually(t, "the key is unknown", func() bool { return errors.Is(a.write(2, 0, 1), rdma.ErrKey) })
	larger := nvram.NewMemory(3 * pieceBytes)
	if err := b.Register(key, larger); err != nil {
		t.Fatal(err)
	}
	if err := a.write(2, 3*pieceBytes-8, 1); err != nil {
		t.Error(err)
	}
	b.hasPinned("of the larger memory", "x.x")
	if r, err := b.NIC.newRegistration(larger); err != nil {
		t.Error(err)
	} else if err := r.end(); err != nil {
		t.Error(err)
	} else if _, err := r.piece(b.NIC, 0); !errors.Is(err, errNoPiece) {
		t.Errorf("a piece of what has ended: %v", err)
	}
}
