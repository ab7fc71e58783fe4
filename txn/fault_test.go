package txn_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// fences has a machine's fenced peers told to the result.
func (r *rig) fences(machine int) *sync.Map {
	var fenced sync.Map
	r.Machine(machine).OnFenced(func(m rdma.MachineID, err error) { fenced.Store(m, err) })
	return &fenced
}

// If a machine appends anything to its log or message queue at another that is no record or
// message, it is fenced there. All others go on.
func TestGarbageFencesItsSender(t *testing.T) {
	const outside = 1<<32 - 64
	class := func(r *rig) region.Class { return r.ptrs[0].Class() }
	encoded := func(rec record.Record) []byte {
		if rec.ID == (record.ID{}) {
			rec.ID = record.ID{Config: 1, Machine: 0, Worker: 0, Seq: 1000}
		}
		return record.Append(nil, &rec)
	}
	update := func(r *rig, p region.Ptr, v region.Version) record.Record {
		return record.Record{Kind: record.Lock, Regions: []region.ID{p.Addr.Region()}, Writes: []record.Write{{Ptr: p, Version: v, Payload: make([]byte, p.Capacity())}}}
	}
	backup := func(rec record.Record) record.Record { rec.Kind = record.CommitBackup; return rec }
	for _, c := range []struct {
		name    string
		log     func(r *rig) [][]byte
		message func(r *rig) []byte
		want    error
	}{
		{"log: nothing", func(*rig) [][]byte { return [][]byte{{}} }, nil, record.ErrBad},
		{"log: noise", func(*rig) [][]byte { return [][]byte{bytes.Repeat([]byte{0xa5}, 64)} }, nil, record.ErrBad},
		{"log: other machine", func(*rig) [][]byte {
			return [][]byte{encoded(record.Record{Kind: record.Truncate, ID: record.ID{Config: 1, Machine: 2, Seq: 5}})}
		}, nil, record.ErrBad},
		{"log: other worker", func(*rig) [][]byte {
			return [][]byte{encoded(record.Record{Kind: record.Truncate, ID: record.ID{Config: 1, Worker: 7, Seq: 5}})}
		}, nil, record.ErrBad},
		{"log: commit of nothing", func(*rig) [][]byte { return [][]byte{encoded(record.Record{Kind: record.CommitPrimary})} }, nil, record.ErrBad},
		{"log: truncated already", func(*rig) [][]byte {
			return [][]byte{encoded(record.Record{Kind: record.CommitPrimary, LowBound: 2000})}
		}, nil, record.ErrBad},
		{"log: lock twice", func(r *rig) [][]byte {
			b := encoded(update(r, r.ptrs[1], 1))
			return [][]byte{b, b}
		}, nil, record.ErrBad},
		{"log: truncate what is locked", func(r *rig) [][]byte {
			return [][]byte{encoded(update(r, r.ptrs[1], 1)), encoded(record.Record{Kind: record.Truncate, LowBound: 2000})}
		}, nil, record.ErrBad},
		{"log: backup twice", func(r *rig) [][]byte {
			b := encoded(backup(update(r, r.ptrs[0], 1)))
			return [][]byte{b, b}
		}, nil, record.ErrBad},
		{"log: backup of a primary", func(r *rig) [][]byte {
			return [][]byte{encoded(backup(update(r, r.ptrs[1], 1))), encoded(record.Record{Kind: record.Truncate, LowBound: 2000})}
		}, nil, record.ErrBad},
		{"log: backup in no slot", func(r *rig) [][]byte {
			p := region.MakePtr(region.MakeAddr(r.ptrs[0].Addr.Region(), 960<<10), class(r), 0)
			return [][]byte{encoded(backup(update(r, p, 1))), encoded(record.Record{Kind: record.Truncate, LowBound: 2000})}
		}, nil, record.ErrBad},
		{"log: backup beyond the region", func(r *rig) [][]byte {
			p := region.MakePtr(region.MakeAddr(r.ptrs[0].Addr.Region(), outside), class(r), 0)
			return [][]byte{encoded(backup(update(r, p, 1))), encoded(record.Record{Kind: record.Truncate, LowBound: 2000})}
		}, nil, record.ErrBad},
		{"message: nothing", nil, func(*rig) []byte { return []byte{} }, message.ErrBad},
		{"message: noise", nil, func(*rig) []byte { return bytes.Repeat([]byte{0xa5}, 64) }, message.ErrBad},
		{"message: validate of another length", nil, func(*rig) []byte { return txn.Message(2, 0, 0, 3, 1, make([]byte, 16)) }, message.ErrBad},
		{"message: validate of nowhere", nil, func(*rig) []byte {
			return txn.Message(2, 0, 0, 1, 1, binary.LittleEndian.AppendUint64(make([]byte, 0, 16), uint64(region.MakeAddr(77, 64)))[:16])
		}, message.ErrBad},
		{"message: validate beyond the region", nil, func(r *rig) []byte {
			return txn.Message(2, 0, 0, 1, 1, binary.LittleEndian.AppendUint64(make([]byte, 0, 16), uint64(region.MakeAddr(r.ptrs[1].Addr.Region(), outside)))[:16])
		}, message.ErrBad},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, txntest.Config{Machines: 4, Replicas: 2, Workers: 1, Clock: newHastyClock()}, 4)
			if r.Machine(0).ReplicasOf(r.ptrs[0])[1] != 1 || slices.Contains(r.Machine(0).ReplicasOf(r.ptrs[2]), 0) {
				t.Fatal("the backup of object 0 is not at machine 1, or object 2 is at machine 0")
			}
			r.settle()
			r.lost = true
			fenced := r.fences(1)
			if c.log != nil {
				for _, b := range c.log(r) {
					r.Machine(0).AppendLog(0, 1, b)
				}
			} else {
				r.Machine(0).AppendMessage(0, 1, c.message(r))
			}
			err, ok := fenced.Load(rdma.MachineID(0))
			if !ok || !errors.Is(err.(error), c.want) || !errors.Is(r.Machine(1).Broken(0, 0), c.want) {
				t.Fatalf("fenced for %v", err)
			}
			r.set(1, 2, 5) // machines 1 and 2 go on
			r.set(2, 2, 6)
			if got := r.get(1, 2); got != 6 {
				t.Errorf("object holds %d", got)
			}
			if _, err := r.Machine(1).ShipTo(ctx, 0, 1, nil); !errors.Is(err, c.want) {
				t.Errorf("machine 1 still talks to machine 0: %v", err)
			}
		})
	}
}

// A LOCK record that asks for what cannot be locked is refused, whatever it is
// that it asks for.
func TestLockOfNonsenseIsRefused(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1}, 2)
	r.settle()
	fenced := r.fences(1)
	headers := r.Machine(1).Header(r.ptrs[1])
	for i, addr := range []region.Addr{
		region.MakeAddr(99, 640), r.ptrs[0].Addr, region.MakeAddr(r.ptrs[1].Addr.Region(), 64), region.MakeAddr(r.ptrs[1].Addr.Region(), 960<<10),
		region.MakeAddr(r.ptrs[1].Addr.Region(), 1<<32-64), region.MakeAddr(r.ptrs[1].Addr.Region(), 1<<20),
	} {
		p := region.MakePtr(addr, r.ptrs[1].Class(), 0)
		rec := record.Record{Kind: record.Lock, ID: record.ID{Config: 1, Seq: uint64(1000 + i)}, Regions: []region.ID{addr.Region()}}
		for _, w := range []region.Ptr{r.ptrs[1], p} { // the first gets locked and unlocked
			rec.Writes = append(rec.Writes, record.Write{Ptr: w, Version: headers.Version(), Payload: make([]byte, w.Capacity())})
		}
		r.Machine(0).AppendLog(0, 1, record.Append(nil, &rec))
		if err, ok := fenced.Load(rdma.MachineID(0)); ok {
			t.Fatalf("%v: fenced: %v", p, err)
		}
		if h := r.Machine(1).Header(r.ptrs[1]); h != headers {
			t.Errorf("%v: object is %v, was %v", p, h, headers)
		}
	}
	r.Machine(0).AppendLog(0, 1, record.Append(nil, &record.Record{Kind: record.Truncate, ID: record.ID{Config: 1}, LowBound: 5000}))
	if err, ok := fenced.Load(rdma.MachineID(0)); ok {
		t.Errorf("fenced: %v", err)
	}
}

// Well-formed messages that nobody has asked for, or that ask for nonsense, change
// nothing.
func TestMessagesOfNonsense(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 1, Workers: 1}, 3)
	r.settle()
	const lockReply, validateReply, request, reply = 1, 3, 4, 5
	const alloc, release, epoch, reserve = 0xff00, 0xff01, 0xff02, 0xff03
	ptr := func(p region.Ptr) []byte { return p.Append(nil) }
	words := func(w ...uint64) (b []byte) {
		for _, v := range w {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	fenced := r.fences(1)
	for _, b := range [][]byte{
		txn.Message(lockReply, 0, 0, 0, 1, nil),
		txn.Message(lockReply, 9, 0, 1<<31, 12345, nil),
		txn.Message(validateReply, 0, 0, 0, 1, nil),
		txn.Message(reply, 200, 0, 0, 1, nil),
		txn.Message(request, 0, alloc, 0, 0, nil),
		txn.Message(request, 0, alloc, 0, 0, bytes.Repeat([]byte{0xff}, 16)),
		txn.Message(request, 0, release, 0, 0, nil),
		txn.Message(request, 0, release, 0, 0, ptr(r.ptrs[1])), // an object, not a lent slot
		txn.Message(request, 0, release, 0, 0, ptr(r.ptrs[0])), // not even here
		txn.Message(request, 0, release, 0, 0, ptr(region.MakePtr(region.MakeAddr(r.ptrs[1].Addr.Region(), 960<<10), 7, 0))),
		txn.Message(request, 0, epoch, 0, 0, nil),
		txn.Message(request, 0, epoch, 0, 0, bytes.Repeat([]byte{0xff}, 8)),
		txn.Message(request, 0, reserve, 0, 0, nil),
		txn.Message(request, 0, reserve, 0, 0, bytes.Repeat([]byte{0xff}, 24)),
		txn.Message(request, 0, reserve, 0, 0, words(99, 0, 64)),
		txn.Message(request, 0, reserve, 0, 0, words(uint64(r.ptrs[1].Addr.Region()), 64, math.MaxUint64)),
		txn.Message(request, 0, reserve, 0, 0, words(uint64(r.ptrs[1].Addr.Region()), math.MaxUint64, 64)),
		txn.Message(request, 0, 0x1234, 0, 0, nil),
	} {
		r.Machine(0).AppendMessage(0, 1, b)
	}
	// One in the way of a commit that is waiting: from a machine that has no part.
	r.Machine(1).OnStep(func(s step.Step) {
		if s == step.LockRecord {
			elsewhere(func() {
				for tag := range uint64(50) {
					r.Machine(0).AppendMessage(0, 1, txn.Message(lockReply, 2, 0, 0, tag, nil))
				}
			})
		}
	})
	r.run(1, func(tx *txn.Tx) error { return write(tx, r.ptrs[2], 5) })
	r.Machine(1).OnStep(nil)
	if err, ok := fenced.Load(rdma.MachineID(0)); ok {
		t.Errorf("fenced: %v", err)
	}
	r.quiet()
}

// Bytes that are no record of the ring at all, written with plain RDMA writes at
// random places of logs and message queues, fence, and crash nothing.
func TestNoiseInRings(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	fences := 0
	for round := range 30 {
		func() {
			r := open(t, txntest.Config{Machines: 3, Replicas: 1, Workers: 1, Clock: newHastyClock()}, 3)
			r.settle()
			r.lost = true
			fenced := r.fences(1)
			key, size := txn.LogKey(0, 0), 256<<10
			if round%2 == 0 {
				key, size = txn.MessagesKey(0, 0), 64<<10
			}
			noise := make([]byte, 64*(1+rng.IntN(40)))
			for i := range noise {
				noise[i] = byte(rng.Uint32())
			}
			// From the control line to where the next record goes, or behind.
			off := uint64(8*rng.IntN(16)) % uint64(size-len(noise))
			r.Machine(0).Locked(0, func() {
				if _, err := r.Machine(0).Queue(0).Write(1, key, off, noise, 1<<40); err != nil {
					t.Error(err)
				}
				if err := r.Machine(0).Queue(0).Ring(1); err != nil {
					t.Error(err)
				}
			})
			if err, ok := fenced.Load(rdma.MachineID(0)); ok {
				fences++
				if !errors.Is(err.(error), ring.ErrCorrupt) && !errors.Is(err.(error), record.ErrBad) && !errors.Is(err.(error), message.ErrBad) {
					t.Errorf("fenced for %v", err)
				}
			}
			r.set(1, 2, 5)
			r.set(2, 1, 6)
		}()
	}
	if fences < 10 {
		t.Errorf("fenced %d times", fences)
	}
}

// A commit that needs a machine which is lost fails; what it had locked at others
// is unlocked, unless a backup may have a record.
func TestLostParticipant(t *testing.T) {
	for _, c := range []struct {
		name    string
		at      step.Step
		replica int // which replica of the object is lost
		inDoubt bool
	}{
		{"primary before the locks", step.Block, 0, false}, // never reached: lost from the beginning
		{"primary after the locks", step.Validate, 0, true},
		{"backup after the locks", step.Validate, 1, true},
		{"backup after the first record", step.CommitBackup, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, txntest.Config{Machines: 5, Replicas: 3, Workers: 1, Clock: newHastyClock()}, 10)
			r.lost = true
			m := r.Machine(0)
			p, own := r.elsewhere(), r.ptrs[0]
			lost := m.ReplicasOf(p)[c.replica]
			if c.replica == 2 { // the last of which a record is written
				lost = max(m.ReplicasOf(p)[1], m.ReplicasOf(p)[2])
			}
			tx := m.Begin()
			must(t, write(tx, p, 1))
			must(t, write(tx, own, 1))
			before := m.Header(own)
			lose := sync.OnceFunc(func() { r.Machine(int(lost)).NIC().Close() })
			if c.at == step.Block {
				lose()
			}
			m.OnStep(func(s step.Step) {
				if s == c.at {
					lose()
				}
			})
			err := tx.Commit(ctx)
			if err == nil || errors.Is(err, outcome.ErrConflict) || errors.Is(err, outcome.ErrInDoubt) != c.inDoubt {
				t.Errorf("commit: %v", err)
			}
			if h := m.Header(own); h.Locked() != c.inDoubt || h.Version() != before.Version() {
				t.Errorf("own object was %v and is %v", before, h)
			}
			m.OnStep(nil)
			other := r.ptrs[5] // at machine 0, like own
			err = m.Run(ctx, func(tx *txn.Tx) error { return write(tx, other, 4) })
			if backups := m.ReplicasOf(other)[1:]; err != nil && backups[0] != lost && backups[1] != lost {
				t.Errorf("others cannot go on: %v", err)
			}
		})
	}
}

func TestClosed(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, LogBytes: 64 << 10, MessageBytes: 16 << 10}, 1)
	m, p := r.Machine(0), r.ptrs[0]
	must(t, r.Close())
	tx := m.Begin()
	_, errRead := tx.Read(p)
	_, _, errAlloc := tx.Alloc(10, 0)
	errCommit := tx.Commit(ctx)
	_, errFree := m.Read(p, make([]byte, p.Capacity()))
	_, errShip := m.ShipTo(ctx, 1, 1, nil)
	_, errPrimary := m.Primary(p.Addr)
	for i, err := range []error{errRead, errAlloc, errCommit, errFree, errShip, errPrimary, m.Run(ctx, func(*txn.Tx) error { return nil })} {
		if !errors.Is(err, outcome.ErrClosed) {
			t.Errorf("operation %d after Close: %v", i, err)
		}
	}
}

// Functions run at the machine they are shipped to; what comes of them comes
// back, whatever it is.
func TestShip(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, r1(cfg))
		var ran [3]atomic.Int32
		for i := range r.Machines() {
			m := r.Machine(i)
			m.Handle(1, func(_ context.Context, arg []byte) ([]byte, error) {
				ran[i].Add(1)
				switch string(arg) {
				case "conflict":
					return nil, fmt.Errorf("here: %w", outcome.ErrConflict)
				case "error":
					return nil, errors.New("boom")
				case "large":
					return make([]byte, 64<<10), nil
				case "full":
					return nil, fmt.Errorf("here: %w", region.ErrFull)
				case "commit":
					return nil, m.Run(ctx, func(tx *txn.Tx) error { return write(tx, r.ptrs[(i+1)%r.Machines()], 77) })
				}
				return append([]byte("re: "), arg...), nil
			})
		}
		from := r.Machine(0)
		for i, p := range r.ptrs {
			reply, err := from.Ship(ctx, p.Addr, 1, []byte("hello"))
			if err != nil || string(reply) != "re: hello" || ran[i].Swap(0) != 1 {
				t.Errorf("machine %d: %q, %v", i, reply, err)
			}
			if _, err := from.Ship(ctx, p.Addr, 1, []byte("conflict")); !errors.Is(err, outcome.ErrConflict) {
				t.Errorf("machine %d: %v", i, err)
			}
			if _, err := from.Ship(ctx, p.Addr, 1, []byte("full")); !errors.Is(err, region.ErrFull) || errors.Is(err, outcome.ErrConflict) {
				t.Errorf("machine %d: %v", i, err)
			}
			if _, err := from.Ship(ctx, p.Addr, 1, []byte("error")); err == nil || errors.Is(err, outcome.ErrConflict) || !strings.Contains(err.Error(), "boom") {
				t.Errorf("machine %d: %v", i, err)
			}
			if _, err := from.Ship(ctx, p.Addr, 2, nil); err == nil || !strings.Contains(err.Error(), "handler 0x2") {
				t.Errorf("machine %d without a handler: %v", i, err)
			}
			if _, err := from.Ship(ctx, p.Addr, 1, []byte("commit")); err != nil {
				t.Errorf("machine %d: %v", i, err)
			}
			if got := r.get(0, (i+1)%r.Machines()); got != 77 {
				t.Errorf("machine %d has written %d", i, got)
			}
			r.set(0, (i+1)%r.Machines(), 0)
			if i == 0 {
				continue
			}
			if _, err := from.Ship(ctx, p.Addr, 1, make([]byte, 20<<10)); !errors.Is(err, outcome.ErrTooLarge) {
				t.Errorf("large argument: %v", err)
			}
			if _, err := from.Ship(ctx, p.Addr, 1, []byte("large")); err == nil || !strings.Contains(err.Error(), "limit") {
				t.Errorf("large result: %v", err)
			}
		}
		if _, err := from.Ship(ctx, region.MakeAddr(99, 64), 1, nil); !errors.Is(err, outcome.ErrNoRegion) {
			t.Errorf("ship to nowhere: %v", err)
		}
		if _, err := from.ShipTo(ctx, 50, 1, nil); err == nil {
			t.Error("shipped to a machine that is not there")
		}
		r.quiet()
	})
}

func r1(cfg txntest.Config) int { return cfg.Machines }

func TestHandlersAreRegisteredOnce(t *testing.T) {
	r := open(t, txntest.Config{}, 0)
	h := func(context.Context, []byte) ([]byte, error) { return nil, nil }
	r.Machine(0).Handle(1, h)
	defer func() {
		if recover() == nil {
			t.Error("registered twice")
		}
	}()
	r.Machine(0).Handle(1, h)
}

// Many large messages through queues that hold four of them: those for which
// there is no room wait in the outbox, and all arrive.
func TestMessagesThroughTinyQueues(t *testing.T) {
	for _, async := range []bool{false, true} {
		t.Run(fmt.Sprintf("async=%v", async), func(t *testing.T) {
			r := open(t, txntest.Config{Machines: 3, Replicas: 1, Workers: 1, MessageBytes: 16 << 10, Network: local.Options{Async: async, Depth: 16}}, 3)
			for i := range 3 {
				r.Machine(i).Handle(1, func(_ context.Context, arg []byte) ([]byte, error) { return arg, nil })
			}
			var wg sync.WaitGroup
			for g := range 24 {
				wg.Go(func() {
					arg := make([]byte, 4000)
					for i := range 30 {
						put(arg, uint64(g*1000+i))
						reply, err := r.Machine(g%3).ShipTo(ctx, rdma.MachineID((g+1+i%2)%3), 1, arg)
						if err != nil || !bytes.Equal(reply, arg) {
							t.Errorf("reply of %d bytes, %v", len(reply), err)
							return
						}
					}
				})
			}
			wg.Wait()
			r.quiet()
		})
	}
}

// Commits of many goroutines over a provider that holds few operations: posts
// wait for room, and nothing is lost.
func TestCommitsThroughShallowQueues(t *testing.T) {
	r := open(t, txntest.Config{Machines: 3, Replicas: 3, Workers: 1, Network: local.Options{Async: true, Depth: 4}}, 6)
	var wg sync.WaitGroup
	rounds := 20
	if invariant.Enabled { // slow
		rounds = 3
	}
	for g := range 12 {
		wg.Go(func() {
			for range rounds {
				err := r.Machine(g%3).Run(ctx, func(tx *txn.Tx) error {
					for i := range 6 {
						v, err := read(tx, r.ptrs[(g+i)%6])
						if err == nil && i < 3 {
							err = write(tx, r.ptrs[(g+i)%6], v+1)
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	total := uint64(0)
	for i := range 6 {
		total += r.get(0, i)
	}
	if want := uint64(12 * rounds * 3); total != want {
		t.Errorf("total is %d, want %d", total, want)
	}
	r.quiet()
}

// A log that is there and holds records that nobody has recovered is not taken
// over.
func TestUnrecoveredLogIsRefused(t *testing.T) {
	mem := nvram.NewMemory(64 << 10)
	rx, err := record.CreateLog(mem, 1)
	must(t, err)
	s, err := rx.State()
	must(t, err)
	if _, _, err := ring.NewLocalSender(s, mem, 0).Append(1, []byte("left over")); err != nil {
		t.Fatal(err)
	}
	n, err := local.NewNetwork(local.Options{}).Join(0)
	must(t, err)
	defer n.Close()
	c := worker.Config{Workers: 1, NIC: n, LogBytes: 64 << 10, MessageBytes: 16 << 10, Clock: newHastyClock()}
	c.Log = func(rdma.MachineID, int) (*nvram.Memory, error) { return mem, nil }
	m, err := txn.New(c)
	must(t, err)
	if _, err := m.Listen(0); err == nil || !strings.Contains(err.Error(), "earlier life") {
		t.Errorf("listens: %v", err)
	}
}

// A peer that is listened to again gets the log that it had: a folder maps a
// memory only once.
func TestListenAgainKeepsTheLog(t *testing.T) {
	n, err := local.NewNetwork(local.Options{}).Join(0)
	must(t, err)
	defer n.Close()
	c := worker.Config{Workers: 1, NIC: n, LogBytes: 64 << 10, MessageBytes: 16 << 10, Clock: newHastyClock()}
	logs := 0
	c.Log = func(rdma.MachineID, int) (*nvram.Memory, error) {
		logs++
		return nvram.NewMemory(64 << 10), nil
	}
	m, err := txn.New(c)
	must(t, err)
	for range 3 {
		_, err := m.Listen(1)
		must(t, err)
	}
	if logs != 1 {
		t.Errorf("%d logs for one peer", logs)
	}
}

// Messages that wait for room are sent when there is some, although nothing else
// happens: no reply comes before all have arrived.
func TestRoomWakesTheSender(t *testing.T) {
	for _, async := range []bool{false, true} {
		r := open(t, txntest.Config{Machines: 2, Replicas: 1, Workers: 1, MessageBytes: 16 << 10, Clock: newHastyClock(), Network: local.Options{Async: async}}, 0)
		const n = 15
		var all sync.WaitGroup
		all.Add(n)
		r.Machine(1).Handle(1, func(context.Context, []byte) ([]byte, error) {
			all.Done()
			all.Wait()
			return nil, nil
		})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if _, err := r.Machine(0).ShipTo(ctx, 1, 1, make([]byte, 4000)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		r.quiet()
	}
}

// A transaction as large as can be gets its room in logs that many small ones
// keep busy.
func TestLargeAmongSmall(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1, LogBytes: 64 << 10}, 8)
	big := r.bigObjects(1, 6000, 2)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := uint64(0); !stop.Load(); i++ {
				if err := r.Machine(0).Run(ctx, func(tx *txn.Tx) error { return writeAll(tx, r.ptrs[2*g:2*g+2], i) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range uint64(100) {
		if err := r.Machine(0).Run(ctx, func(tx *txn.Tx) error { return writeAll(tx, big, i) }); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	r.quiet()
}

// While one transaction waits, those after it are truncated by name as far as ledgers
// have places, and the others when it has ended: where they are replicated, nothing is
// left to be done then.
func TestTruncationWaitsForTheBound(t *testing.T) {
	const after = txn.LedgerNames + 40
	r := open(t, txntest.Config{Machines: 3, Replicas: 1, Workers: 1, LogBytes: 1 << 20}, 3)
	hear := r.deaf(2)
	done, before := make(chan error), r.Machine(0).LastID(0)
	go func() {
		done <- r.Machine(0).Run(ctx, func(tx *txn.Tx) error { return write(tx, r.ptrs[2], 7) })
	}()
	awaitTrue(t, "a commit waits", func() bool { return r.Machine(0).LastID(0) != before })
	for i := range uint64(after) {
		r.set(0, 1, i)
	}
	var left int
	awaitTrue(t, "what can be named is truncated", func() bool {
		records, err := r.Machine(1).LogRecords(0, 0)
		must(t, err)
		seen := map[uint64]bool{}
		for _, x := range records {
			if x.Kind == record.Lock {
				seen[x.ID.Seq] = true
			}
		}
		left = len(seen)
		return left <= after-txn.LedgerNames+1
	})
	if left < after-txn.LedgerNames+1 {
		t.Errorf("%d transactions are left in the log, of %d", left, after)
	}
	hear()
	must(t, <-done)
	r.quiet()
}

// A machine that listens to a peer anew still knows which transactions of the peer's
// it has truncated, and no others.
func TestListenAgainKeepsTheLedger(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2, Workers: 1}, 2)
	r.lost = true
	r.set(0, 1, 7)
	id := r.Machine(0).LastID(0)
	m, next := r.Machine(1), id
	next.Seq++
	awaitTrue(t, "the transaction is truncated", func() bool {
		must(t, r.Machine(0).Quiesce(time.Second))
		return m.Recovery().Truncated(id, region.ID(1))
	})
	_, err := m.Listen(0)
	must(t, err)
	if !m.Recovery().Truncated(id, region.ID(1)) || m.Recovery().Truncated(next, region.ID(1)) {
		t.Errorf("%v is truncated: %v; the next one: %v", id, m.Recovery().Truncated(id, region.ID(1)), m.Recovery().Truncated(next, region.ID(1)))
	}
}

// elsewhere runs f as another machine's goroutine, which holds none of this one's locks.
func elsewhere(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
