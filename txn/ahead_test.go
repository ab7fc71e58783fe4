package txn_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// numbers reads objects together.
func numbers(tx *txn.Tx, ptrs []region.Ptr) (all []uint64, err error) {
	payloads, err := tx.ReadMany(nil, ptrs)
	for _, b := range payloads {
		all = append(all, number(b))
	}
	return all, err
}

// Objects read together have the same contents as if they were read one by one, cost one round
// trip, and conflict with transactions that change them.
func TestReadMany(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 30)
		for i := range r.ptrs {
			r.set(0, i, uint64(i))
		}
		m := r.Machine(0)
		for _, changed := range []int{-1, 0, 7, 29} {
			r.settle() // an object that is still locked is read again
			before := m.Stats()
			tx := m.Begin()
			all, err := numbers(tx, r.ptrs)
			must(t, err)
			for i, n := range all {
				if n != uint64(i) || len(all) != len(r.ptrs) {
					t.Fatalf("read %d", all)
				}
			}
			s := m.Stats().Sub(before)
			// Objects that follow each other in memory share a READ.
			here := (len(r.ptrs) + r.Machines() - 1) / r.Machines()
			if there := uint64(len(r.ptrs) - here); s.RemoteReads > there || (s.RemoteReads == 0) != (there == 0) {
				t.Errorf("%d READs of %d objects, %d of them here", s.RemoteReads, len(r.ptrs), here)
			}
			if s.RoundTrips > 1 || s.RoundTrips == 0 && r.Machines() > 1 {
				t.Errorf("%d round trips", s.RoundTrips)
			}
			if changed < 0 {
				must(t, tx.Commit(ctx))
				continue
			}
			r.set(r.Machines()-1, changed, uint64(changed))
			wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
		}
		r.quiet()
	})
}

// Objects that a transaction has written, allocated or freed look the same to it when it reads them
// together.
func TestReadManyOfOwn(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 6)
		tx := r.Machine(0).Begin()
		defer tx.Abort()
		must(t, write(tx, r.ptrs[1], 5))
		p, b, err := tx.Alloc(8, r.ptrs[2].Addr)
		must(t, err)
		put(b, 6)
		tx.ReadAhead(append(r.ptrs, p))
		mark := tx.Mark()
		must(t, write(tx, r.ptrs[2], 7))
		all, err := numbers(tx, []region.Ptr{r.ptrs[0], r.ptrs[1], r.ptrs[2], p, r.ptrs[2], r.ptrs[0]})
		if must(t, err); !slices.Equal(all, []uint64{0, 5, 7, 6, 7, 0}) {
			t.Errorf("read %d", all)
		}
		tx.Rollback(mark)
		if all, err = numbers(tx, r.ptrs[:3]); err != nil || !slices.Equal(all, []uint64{0, 5, 0}) {
			t.Errorf("after a rollback %d, %v", all, err)
		}
		must(t, tx.Free(r.ptrs[3]))
		if all, err = numbers(tx, r.ptrs); len(all) != 3 {
			t.Errorf("read %d before the freed one", all)
		}
		wantReason(t, err, txn.ReasonFreed)
	})
}

// An object that was read ahead joins the read set when the transaction asks for it, and not
// before. It then has the content with which it was read ahead.
func TestReadAhead(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 5)
		other, m := r.Machines()-1, r.Machine(0)
		for name, ask := range map[string]func(tx *txn.Tx, p region.Ptr) error{
			"nothing": func(*txn.Tx, region.Ptr) error { return nil },
			"Read":    func(tx *txn.Tx, p region.Ptr) error { _, err := tx.Read(p); return err },
			"Write":   func(tx *txn.Tx, p region.Ptr) error { _, err := tx.Write(p); return err },
			"ReadPart": func(tx *txn.Tx, p region.Ptr) error {
				_, err := half(tx, p, 0)
				return err
			},
		} {
			for i, p := range r.ptrs {
				r.settle() // an object that is still locked is not read ahead
				tx := m.Begin()
				tx.ReadAhead(r.ptrs)
				if q := slices.IndexFunc(r.ptrs, func(q region.Ptr) bool { return q != p && !m.IsPrimary(q.Addr) }); q >= 0 {
					tx.PeekAhead(r.ptrs[q]) // which waits for all READs: an asynchronous one could come after the change
				}
				must(t, write(tx, r.ptrs[(i+1)%len(r.ptrs)], 1))
				r.set(other, (i+2)%len(r.ptrs), 3)
				if !m.IsPrimary(p.Addr) {
					r.set(other, i, 2)
				}
				must(t, ask(tx, p))
				if m.IsPrimary(p.Addr) {
					r.set(other, i, 2)
				}
				if err := tx.Commit(ctx); name == "nothing" {
					must(t, err)
				} else if !errors.Is(err, outcome.ErrConflict) {
					t.Errorf("%s of object %d, which was changed: %v", name, i, err)
				}
			}
		}
		r.quiet()
	})
}

// Pairs of neighbours that are read ahead wait once, and take a READ for each stretch of memory. Two
// pairs with one object in common both find it; whoever asks once more reads what is committed then.
func TestPairsReadAhead(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 1)
		var p region.Ptr
		r.run(0, func(tx *txn.Tx) (err error) {
			if p, err = tx.AllocArray(100, 8, r.ptrs[0].Addr); err != nil {
				return err
			}
			for i := range 8 {
				if err := write(tx, p.Element(i), uint64(i)); err != nil {
					return err
				}
			}
			return nil
		})
		for i := range 8 {
			r.ptrs = append(r.ptrs, p.Element(i))
		}
		r.settle()
		m := r.Machine(r.Machines() - 1)
		tx := m.Begin()
		defer tx.Abort()
		before := m.Stats()
		if n := tx.ReadAhead([]region.Ptr{p, p.Element(1), p.Element(1), p.Element(2), p.Element(5), p.Element(6)}); n != 6 {
			t.Errorf("dealt with %d of 6", n)
		}
		pair := func(i int, want uint64) {
			t.Helper()
			a, b, _, _, err := tx.PeekPair(p.Element(i))
			if must(t, err); number(a) != want || number(b) != uint64(i)+1 {
				t.Errorf("pair %d is %d and %d", i, number(a), number(b))
			}
		}
		for _, i := range []int{0, 1, 5} {
			pair(i, uint64(i))
		}
		if s := m.Stats().Sub(before); m.IsPrimary(p.Addr) != (s.RoundTrips == 0) || !m.IsPrimary(p.Addr) && (s.RoundTrips != 1 || s.RemoteReads != 2) {
			t.Errorf("%d READs in %d round trips", s.RemoteReads, s.RoundTrips)
		}
		r.set(0, 1, 9) // p
		r.settle()
		pair(0, 9)
	})
}

// The copy that Write returns is the transaction's own: an object that was named twice is read again
// for whoever asks for the committed one.
func TestWriteTakesWhatWasReadAhead(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 1)
		r.settle()
		tx := r.Machine(r.Machines() - 1).Begin()
		defer tx.Abort()
		tx.ReadAhead([]region.Ptr{r.ptrs[0], r.ptrs[0]})
		b, err := tx.Write(r.ptrs[0])
		must(t, err)
		was := number(b)
		b[0]++
		committed, _, err := tx.Peek(r.ptrs[0])
		must(t, err)
		if number(committed) != was {
			t.Errorf("%d is committed, and Peek returns %d", was, number(committed))
		}
	})
}

// Objects that are gone, or locked, or nowhere, are no matter before they are asked for.
func TestReadAheadOfWhatIsNotThere(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 4)
		m := r.Machine(0)
		gone := r.ptrs[len(r.ptrs)-1]
		r.ptrs = r.ptrs[:len(r.ptrs)-1]
		tx := m.Begin()
		r.run(0, func(tx *txn.Tx) error { return tx.Free(gone) })
		if n := tx.ReadAhead([]region.Ptr{{}, gone, region.MakePtr(region.MakeAddr(1000, 64), 0, 0), r.ptrs[1]}); n != 4 {
			t.Errorf("dealt with %d of 4", n)
		}
		if _, _, ok := tx.PeekAhead(gone); ok {
			t.Error("a freed object was read ahead")
		}
		if b, _, ok := tx.PeekAhead(r.ptrs[1]); !ok || number(b) != 0 {
			t.Error("nothing of the other was read ahead")
		}
		if _, _, ok := tx.PeekAhead(r.ptrs[1]); ok != m.IsPrimary(r.ptrs[1].Addr) {
			t.Error("read ahead once, and used twice")
		}
		must(t, tx.Validate())
		_, err := numbers(tx, []region.Ptr{r.ptrs[0], gone})
		wantReason(t, err, txn.ReasonFreed)
		if n := tx.ReadAhead(r.ptrs); n != 0 {
			t.Errorf("a transaction that has failed reads %d objects ahead", n)
		}
		tx.Abort()
		if n := tx.ReadAhead(r.ptrs); n != 0 {
			t.Errorf("a transaction that has ended reads %d objects ahead", n)
		}
		if _, err := tx.ReadMany(nil, r.ptrs); err != txn.ErrDone {
			t.Error(err)
		}
		tx = m.Begin()
		tx.ReadAhead(r.ptrs)
		tx.Abort() // with READs under way
		r.quiet()
	})
}

// More than may be posted at once is read in as many round trips as that takes.
func TestReadManyOfMany(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, RegionBytes: 4 << 20, LogBytes: 1 << 20, Network: local.Options{Async: true, Depth: 64}}, 1)
	ptrs := r.bigObjects(1, 8, 600)
	large := r.bigObjects(1, 200<<10, 8)
	for _, c := range []struct {
		ptrs  []region.Ptr
		trips uint64
	}{{ptrs, 3}, {large, 2}, {append(slices.Clone(ptrs[:10]), ptrs[:10]...), 1}} {
		tx := r.Machine(0).Begin()
		before := r.Machine(0).Stats()
		_, err := tx.ReadMany(nil, c.ptrs)
		must(t, err)
		if s := r.Machine(0).Stats().Sub(before); s.RoundTrips != c.trips {
			t.Errorf("%d READs of %d objects took %d round trips, want %d", s.RemoteReads, len(c.ptrs), s.RoundTrips, c.trips)
		}
		must(t, tx.Commit(ctx))
	}
	r.quiet()
}

// A readsNIC counts the READs that its queues have under way.
type readsNIC struct {
	rdma.NIC
	mu             sync.Mutex
	underWay, most int
}

type readsQueue struct {
	rdma.Queue
	nic *readsNIC
	// reads are the READs under way by their tags.
	reads map[uint64]bool
}

func (n *readsNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	q, err := n.NIC.Open(worker, bell)
	return &readsQueue{q, n, make(map[uint64]bool)}, err
}

func (q *readsQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	done, err := q.Queue.Read(to, k, off, dst, tag)
	if !done && err == nil {
		q.nic.mu.Lock()
		defer q.nic.mu.Unlock()
		q.reads[tag] = true
		q.nic.underWay++
		q.nic.most = max(q.nic.most, q.nic.underWay)
	}
	return done, err
}

func (q *readsQueue) Poll(cs []rdma.Completion) int {
	n := q.Queue.Poll(cs)
	q.nic.mu.Lock()
	defer q.nic.mu.Unlock()
	for _, c := range cs[:n] {
		if q.reads[c.Tag] {
			delete(q.reads, c.Tag)
			q.nic.underWay--
		}
	}
	return n
}

// All READs are posted before the first completion is taken.
func TestReadManyPostsFirst(t *testing.T) {
	var nics []*readsNIC
	r := open(t, txntest.Config{Machines: 3, Network: local.Options{Async: true}, Wrap: func(n rdma.NIC) rdma.NIC {
		nics = append(nics, &readsNIC{NIC: n})
		return nics[len(nics)-1]
	}}, 90)
	nic := nics[0]
	nic.mu.Lock()
	nic.most = 0
	nic.mu.Unlock()
	tx := r.Machine(0).Begin()
	_, err := tx.ReadMany(nil, r.ptrs)
	must(t, err)
	nic.mu.Lock()
	if nic.most != 60 || nic.underWay != 0 {
		t.Errorf("%d of 60 READs under way at once, %d still", nic.most, nic.underWay)
	}
	nic.mu.Unlock()
	must(t, tx.Commit(context.Background()))
	r.quiet()
}

// A transaction that goes on after Validate, as one does from statement to statement, reads
// what is committed then and not what it read ahead before, and does not conflict.
func TestValidateForgetsWhatWasReadAhead(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 6)
		tx := r.Machine(0).Begin()
		tx.ReadAhead(r.ptrs)
		_, err := tx.Read(r.ptrs[0])
		must(t, err)
		must(t, tx.Validate())
		for i := 1; i < len(r.ptrs); i++ {
			r.set(r.Machines()-1, i, uint64(10+i))
		}
		all, err := numbers(tx, r.ptrs)
		must(t, err)
		for i, n := range all[1:] {
			if n != uint64(11+i) {
				t.Errorf("object %d is %d after it was changed", i+1, n)
			}
		}
		must(t, tx.Commit(ctx))
		r.quiet()
	})
}

// A heldNIC holds completions of READs back as long as a test wants.
type heldNIC struct {
	rdma.NIC
	mu    sync.Mutex
	holds bool
	fails error // of the next completion that was kept back, once it is told
	bells []func()
}

type heldQueue struct {
	rdma.Queue
	nic *heldNIC
	// reads are the READs under way by their tags, and held are completions of some.
	reads map[uint64]bool
	held  []rdma.Completion
}

func (n *heldNIC) Open(worker int, bell func()) (rdma.Queue, error) {
	q, err := n.NIC.Open(worker, bell)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bells = append(n.bells, bell)
	return &heldQueue{Queue: q, nic: n, reads: make(map[uint64]bool)}, err
}

func (q *heldQueue) Read(to rdma.MachineID, k rdma.Key, off uint64, dst []byte, tag uint64) (bool, error) {
	done, err := q.Queue.Read(to, k, off, dst, tag)
	if !done && err == nil {
		q.reads[tag] = true
	}
	return done, err
}

func (q *heldQueue) Poll(cs []rdma.Completion) int {
	q.nic.mu.Lock()
	defer q.nic.mu.Unlock()
	n := 0
	for _, c := range cs[:q.Queue.Poll(cs)] {
		if q.nic.holds && q.reads[c.Tag] {
			q.held = append(q.held, c)
			continue
		}
		delete(q.reads, c.Tag)
		cs[n] = c
		n++
	}
	for !q.nic.holds && len(q.held) > 0 && n < len(cs) {
		delete(q.reads, q.held[0].Tag)
		cs[n], q.held = q.held[0], q.held[1:]
		cs[n].Err, q.nic.fails = cmp.Or(cs[n].Err, q.nic.fails), nil
		n++
	}
	return n
}

// hold keeps completions back, or lets go of them, of which the first then says that it fails.
func (n *heldNIC) hold(on bool, fails error) {
	n.mu.Lock()
	n.holds, n.fails = on, fails
	bells := n.bells
	n.mu.Unlock()
	for _, bell := range bells {
		bell()
	}
}

// The memory that READs write into is used again only once all have been completed, even if
// the transaction ends before. What a READ that has failed was for is read again.
func TestEndAwaitsWhatIsReadAhead(t *testing.T) {
	for _, fails := range []error{nil, errors.New("failed on purpose")} {
		var nics []*heldNIC
		r := open(t, txntest.Config{Machines: 3, Network: local.Options{Async: true}, Wrap: func(n rdma.NIC) rdma.NIC {
			nics = append(nics, &heldNIC{NIC: n})
			return nics[len(nics)-1]
		}}, 30)
		tx := r.Machine(0).Begin()
		nics[0].hold(true, fails)
		tx.ReadAhead(r.ptrs)
		ended := make(chan error)
		go func() {
			var err error
			if fails != nil {
				_, err = numbers(tx, r.ptrs)
			}
			tx.Abort()
			ended <- err
		}()
		select {
		case <-ended:
			t.Errorf("%v: the transaction has ended with READs under way", fails)
		case <-time.After(50 * time.Millisecond):
		}
		nics[0].hold(false, fails)
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(10 * time.Second):
			t.Fatalf("%v: the transaction does not end", fails)
		}
		r.quiet()
	}
}

// An intent that reads ahead waits for other machines once. What changes before it reads the copies
// makes the transaction prepare again, with later copies.
func TestPrepareReadsAhead(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 30)
		m := r.Machine(0)
		for _, changes := range []bool{false, true} {
			r.settle()
			for i := range r.ptrs {
				r.set(0, i, 10)
			}
			r.settle()
			calls := 0
			tx := m.Begin()
			tx.ReadAhead(r.ptrs[:10]) // older than the preparation
			tx.Defer(scripted(func(l *txn.Late) error {
				calls++
				before := m.Stats()
				if n := l.ReadAhead(r.ptrs); n != len(r.ptrs) {
					t.Errorf("%d objects are read ahead", n)
				}
				if _, err := l.Read(r.ptrs[0]); err != nil { // waits for all of them
					return err
				}
				if trips := m.Stats().Sub(before).RoundTrips; calls == 1 && trips > 1 {
					t.Errorf("%d round trips", trips)
				}
				for i := 0; calls == 1 && changes && i < len(r.ptrs); i++ {
					r.set(r.Machines()-1, i, 20)
				}
				before = m.Stats()
				for _, p := range r.ptrs {
					b, err := l.Write(p)
					if err != nil {
						return err
					}
					put(b, number(b)+1)
				}
				if trips := m.Stats().Sub(before).RoundTrips; calls == 1 && trips > 0 {
					t.Errorf("%d round trips for copies that have been read", trips)
				}
				return nil
			}))
			must(t, tx.Commit(ctx))
			if isAgain := calls > 1; isAgain != changes {
				t.Errorf("prepared %d times, changed meanwhile: %v", calls, changes)
			}
			want := uint64(11)
			if changes {
				want = 21
			}
			for i := range r.ptrs {
				if n := r.get(0, i); n != want {
					t.Errorf("object %d holds %d, want %d", i, n, want)
				}
			}
		}
		r.quiet()
	})
}
