package txn_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// A member whose connection is broken at its peer, and which does not know it, writes
// nothing to that peer from the next configuration on: what it has written before is
// still found and read, what it writes then fails, and it says so.
func TestFreezeEndsBrokenConnections(t *testing.T) {
	for _, async := range []bool{false, true} {
		r := open(t, txntest.Config{Machines: 3, Replicas: 2, Workers: 1, Clock: newHastyClock(), Network: local.Options{Async: async}}, 3)
		r.settle()
		r.lost = true
		fenced := r.fences(0)
		sender, m, p := r.Machine(0), r.Machine(1), r.ptrs[0]
		if !slices.Equal(m.ReplicasOf(p), []rdma.MachineID{0, 1}) {
			t.Fatalf("object 0 is at %v", m.ReplicasOf(p))
		}
		sender.AppendMessage(0, 1, nil) // which is none
		awaitTrue(t, "machine 1 does not believe machine 0", func() bool { return m.Broken(0, 0) != nil })
		id := record.ID{Config: uint32(m.Config()), Machine: 0, Seq: 1000}
		sender.AppendLog(0, 1, record.Append(nil, &record.Record{
			Kind: record.CommitBackup, ID: id, Regions: []region.ID{p.Addr.Region()},
			Writes: []record.Write{{Ptr: p, Version: 1, Payload: make([]byte, p.Capacity())}},
		}))
		awaitTrue(t, "the record has landed", func() bool {
			records, err := m.LogRecords(0, 0)
			must(t, err)
			return slices.ContainsFunc(records, func(x record.Record) bool { return x.ID == id })
		})
		next := r.Configuration()
		next.ID++
		if apart := m.Freeze(next); !slices.Equal(apart, []rdma.MachineID{0}) {
			t.Errorf("machine 1 is apart from %v", apart)
		}
		found, err := m.Recovery().Drain(next.ID)
		must(t, err)
		i := slices.IndexFunc(found, func(e evidence.Evidence) bool { return e.ID == id })
		if i < 0 {
			t.Fatalf("found %v", found)
		}
		if writes, err := r.Machine(2).Recovery().Fetch(1, found[i]); err != nil || len(writes) != 1 {
			t.Errorf("fetched %v, %v", writes, err)
		}
		err = sender.Run(ctx, func(tx *txn.Tx) error { return writeAll(tx, r.ptrs[:1], 7) })
		if !errors.Is(err, outcome.ErrInDoubt) || !errors.Is(err, rdma.ErrKey) {
			t.Errorf("machine 0 commits: %v", err)
		}
		if err, ok := fenced.Load(rdma.MachineID(1)); !ok || !errors.Is(err.(error), rdma.ErrKey) {
			t.Errorf("machine 0 says of machine 1: %v", err)
		}
	}
}

// A peer that connects anew takes away what commits under way had been written to:
// the machine asks for a configuration that ends them.
func TestListenAgainAmongCommits(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, Clock: newHastyClock()}, 2)
	r.settle()
	r.lost = true
	fenced, m := r.fences(0), r.Machine(0)
	m.OnStep(func(s step.Step) {
		if s == step.Validate {
			_, err := m.Listen(1)
			must(t, err)
		}
	})
	if err := m.Run(ctx, func(tx *txn.Tx) error { return writeAll(tx, r.ptrs, 7) }); err == nil {
		t.Error("it has committed")
	}
	if err, ok := fenced.Load(rdma.MachineID(1)); !ok || !errors.Is(err.(error), outcome.ErrLost) {
		t.Errorf("machine 0 says of machine 1: %v", err)
	}
}

func awaitTrue(t *testing.T, what string, f func() bool) {
	t.Helper()
	for range 5000 {
		if f() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("not so: %s", what)
}

// Of two machines that connect one is connected first, and may call the other
// before that can reply. Its reply does not wait for something else to happen there.
func TestReplyBeforeConnected(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1, Clock: newHastyClock()}, 0)
	r.settle()
	const echo = 7
	first, second := r.Machine(0), r.Machine(1)
	second.Handle(echo, func(_ context.Context, arg []byte) ([]byte, error) { return arg, nil })
	fromFirst, err := first.Listen(1)
	must(t, err)
	fromSecond, err := second.Listen(0)
	must(t, err)
	must(t, first.Connect(1, fromSecond))
	replied := make(chan error, 1)
	go func() {
		_, err := first.ShipTo(ctx, 1, echo, []byte("x"))
		replied <- err
	}()
	awaitTrue(t, "the reply waits", func() bool { return second.Unsent(0, 0) > 0 })
	must(t, second.Connect(0, fromFirst))
	must(t, <-replied)
}

// A peer that Freeze has severed can write messages as little as records: it finds out
// by the first, and nothing of it waits in memory for the next connection.
func TestSeveredPeersWriteNoMessages(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 2, Workers: 1, Clock: newHastyClock()}, 3)
	r.settle()
	r.lost = true
	write := func() error {
		var err error
		r.Machine(0).Locked(0, func() {
			_, err = r.Machine(0).Queue(0).Write(1, txn.MessagesKey(0, 0), 1024, make([]byte, 8), rdma.Unsignalled)
		})
		return err
	}
	must(t, write())
	m := r.Machine(1)
	r.Machine(0).AppendMessage(0, 1, nil) // which is none
	awaitTrue(t, "machine 1 does not believe machine 0", func() bool { return m.Broken(0, 0) != nil })
	next := r.Configuration()
	next.ID++
	m.Freeze(next)
	if err := write(); !errors.Is(err, rdma.ErrKey) {
		t.Errorf("a message of a severed peer: %v", err)
	}
}

// Once a machine is frozen for a configuration that does not give it a replica any more,
// which it still has, nothing of that is reserved: it is about to be taken away. A primary
// that does not know the configuration yet was told that its message was bad.
func TestNothingIsReservedInWhatGoes(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 2, Clock: newHastyClock()}, 3)
	r.settle()
	r.lost = true
	m, id := r.Machine(1), r.ptrs[0].Addr.Region()
	must(t, m.Reserve(id, 0, 4096))
	next := r.Configuration()
	next.ID++
	for i := range next.Regions {
		if p := &next.Regions[i]; p.Region == id {
			p.Backups = []rdma.MachineID{2}
		}
	}
	m.Freeze(next)
	if err := m.Reserve(id, 0, 4096); !errors.Is(err, outcome.ErrNoRegion) {
		t.Errorf("a reservation in what goes: %v", err)
	}
}

// A machine that has lost the role of a region's primary, and has it again, knows nothing of what it lent
// before, and nor do the borrowers: no slot that is returned late becomes free. It is so although the
// machine never applies the configuration in which it was a backup.
func TestEarlierLoansEnd(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, Clock: newHastyClock()}, 2)
	r.settle()
	r.lost = true
	lender, borrower := r.Machine(0), r.Machine(1)
	tx := borrower.Begin()
	lent, _, err := tx.Alloc(100, r.ptrs[0].Addr)
	must(t, err)
	in := uint32(lender.Config())
	loans := func() []region.Ptr {
		return lender.Replicas.Loans.Except(func(participant.Borrower) bool { return false })
	}
	if got := loans(); !slices.Contains(got, lent) {
		t.Fatalf("%v is not lent: %v", lent, got)
	}
	next := r.Configuration()
	next.ID += 2
	for i := range next.Regions {
		if p := &next.Regions[i]; p.Primary == 0 {
			p.LastPrimaryChange = next.ID
		}
	}
	lender.Freeze(next)
	if got := loans(); len(got) > 0 {
		t.Errorf("still on loan: %v", got)
	}
	free := func() int { return len(lender.Replicas.Allocator.Check()) } // a reserved slot without an object is a fault
	before := free()
	lender.ReleaseSlot(lent, in)
	if before == 0 || free() != before {
		t.Errorf("%d slots were reserved, %d are", before, free())
	}
	lender.ReleaseSlot(lent, uint32(next.ID))
	if free() == before {
		t.Error("nothing is ever released")
	}
}

// A slot that was lent, and is lent once more to another borrower, is not taken back by the release of
// the first one: that may be handled so late that the machine has lost the role of the primary meanwhile, and
// has it again.
func TestLateReleases(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, Clock: newHastyClock()}, 2)
	r.settle()
	r.lost = true
	lender, borrower := r.Machine(0), r.Machine(1)
	lent, _, err := borrower.Begin().Alloc(100, r.ptrs[0].Addr)
	must(t, err)
	in := uint32(lender.Config())
	next := r.Configuration()
	next.ID += 2
	for i := range next.Regions {
		if p := &next.Regions[i]; p.Primary == 0 {
			p.LastPrimaryChange = next.ID
		}
	}
	const handlerRelease = 0xff01
	release := func(config uint32) error {
		_, err := lender.ShipTo(t.Context(), 0, handlerRelease, message.Release{Ptr: lent, Config: config}.Encode(protocol.Own.Max))
		return err
	}
	lender.Replicas.Allocator.Keep(func(region.ID) (isOurs, goesOn bool) { return true, false })
	lender.Freeze(next)
	if err := release(in); err != nil {
		t.Errorf("a loan that has ended: %v", err)
	}
	lender.Replicas.Allocator.Add(lender.Route(lent.Addr.Region()).Local)
	// reserves reserves slots until it gets the one that was lent. For a new slab it would need its backup.
	reserves := func() bool {
		for {
			if p, _, _, err := lender.Replicas.Allocator.Alloc(region.Ordinary, 0, 100, r.ptrs[0].Addr); err != nil || p == lent {
				return err == nil
			}
		}
	}
	if !reserves() {
		t.Fatal("the slot is not free for the next tenure")
	}
	second := participant.Loan{Borrower: participant.Borrower{Machine: 1, Connection: 3}, Config: uint32(next.ID)}
	if !lender.Replicas.Loans.Add(lent, second) {
		t.Fatal("not lent")
	}
	loans := func() []region.Ptr {
		return lender.Replicas.Loans.Except(func(participant.Borrower) bool { return false })
	}
	if err := release(in); err != nil || !slices.Contains(loans(), lent) {
		t.Errorf("%v: the loans are %v, and no more %v", err, loans(), lent)
	}
	if reserves() {
		t.Error("the slot of the second borrower is reserved once more")
	}
	if err := release(uint32(next.ID) + 1); !errors.Is(err, message.ErrBad) {
		t.Errorf("the release of a loan that has not been: %v", err)
	}
	if err := release(uint32(next.ID)); err != nil || slices.Contains(loans(), lent) {
		t.Errorf("%v: the loans are %v", err, loans())
	}
}

// A borrower that does not need a slot says in which configuration it was lent, once all members know
// that it does.
func TestReleasesNameTheirLoan(t *testing.T) {
	for _, version := range []protocol.Version{protocol.Moves, protocol.Handovers} {
		r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, Clock: newHastyClock()}, 2)
		r.settle()
		r.lost = true
		lender, borrower := r.Machine(0), r.Machine(1)
		tx := borrower.Begin()
		lent, _, err := tx.Alloc(100, r.ptrs[0].Addr)
		must(t, err)
		if !lender.Replicas.Loans.Take(lent) {
			t.Fatalf("%v is not lent", lent)
		}
		second := participant.Loan{Borrower: participant.Borrower{Machine: 1}, Config: uint32(lender.Config()) + 1}
		if !lender.Replicas.Loans.Add(lent, second) {
			t.Fatal("not lent")
		}
		c := r.Configuration()
		c.Speaks = version
		borrower.Remap(c, func(id region.ID) *region.Region { return borrower.Route(id).Local })
		tx.Abort()
		must(t, r.idle(1))
		stands := lender.Replicas.Loans.Return(lent, second.Config)
		if stands != (version >= protocol.Handovers) {
			t.Errorf("version %d: another loan of the slot stands: %v", version, stands)
		}
	}
}
