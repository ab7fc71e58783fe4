package ring

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// modes runs a test for each way in which a sender can reach its ring.
func modes(t *testing.T, size uint64, test func(t *testing.T, p *pair)) {
	for _, o := range []pairOptions{{}, {remote: true}, {remote: true, async: true}} {
		o.bytes = size
		t.Run(fmt.Sprintf("remote=%v,async=%v", o.remote, o.async), func(t *testing.T) { test(t, newPair(t, o)) })
	}
}

// payload is n bytes that tell stamp.
func payload(n int, stamp uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(stamp, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestPartsBecomeOneRecord(t *testing.T) {
	modes(t, 1<<12, func(t *testing.T, p *pair) {
		for i := range 300 { // many laps, records at every offset
			want := payload(i%131, uint64(i))
			pos := p.append(t, want[:i%131/3], nil, want[i%131/3:])
			rec := p.poll(t)
			if !bytes.Equal(rec.Payload, want) {
				t.Fatalf("record %d is %x, want %x", i, rec.Payload, want)
			}
			if rec.Pos != pos || rec.End != pos+Space(len(want)) || rec.End != p.sender.Tail() {
				t.Fatalf("record %d is at %d to %d, appended at %d", i, rec.Pos, rec.End, pos)
			}
			if _, ok, err := p.receiver.Poll(); ok || err != nil {
				t.Fatalf("something after the last record: %v", err)
			}
			p.receiver.Free(rec.End)
			p.refresh(t)
		}
	})
}

// A record that rings is there when the bell is heard, also one in two parts; a record that does not
// ring is silent.
func TestBellFindsTheRecord(t *testing.T) {
	for _, async := range []bool{false, true} {
		rung := make(chan struct{}, 1)
		p := newPair(t, pairOptions{remote: true, async: async, bytes: 1 << 10, bell: func() {
			select {
			case rung <- struct{}{}:
			default: // one call stands for several
			}
		}})
		appends := []func(tag uint64, payload []byte) (uint64, bool, error){
			func(tag uint64, payload []byte) (uint64, bool, error) { return p.sender.AppendRing(tag, payload) },
			func(tag uint64, payload []byte) (uint64, bool, error) {
				copy(p.sender.Stage(len(payload)), payload)
				if !p.sender.Reserve(Space(len(payload))) {
					t.Fatal("no room")
				}
				return p.sender.PostReservedRing(tag)
			},
		}
		for i := range 100 { // several laps
			want := payload(100+i, uint64(i))
			_, done, err := appends[i%2](7, want)
			if err != nil {
				t.Fatal(err)
			}
			p.flush()
			<-rung
			if rec := p.poll(t); !bytes.Equal(rec.Payload, want) {
				t.Fatalf("record %d is %x, want %x", i, rec.Payload, want)
			}
			p.receiver.Free(p.receiver.Next())
			if !done {
				p.settle(t, 1)
			}
			p.refresh(t) // the receiver's write of its head may not have arrived
		}
		p.append(t, []byte("silent"))
		select {
		case <-rung:
			t.Error("an append has rung that should not")
		default:
		}
	}
}

// A ring of this machine is written like any other; there is nobody to ring.
func TestOwnRingIsNotRung(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1 << 10})
	if _, done, err := p.sender.AppendRing(7, []byte("own")); !done || err != nil {
		t.Fatal(done, err)
	}
	if rec := p.poll(t); string(rec.Payload) != "own" {
		t.Errorf("record is %q", rec.Payload)
	}
}

// A model of the ring: the records not freed, oldest first.
type model struct {
	records []Record
	polled  int
}

// TestModel does random things to a ring and to a queue of slices.
func TestModel(t *testing.T) {
	modes(t, 2048, func(t *testing.T, p *pair) {
		for seed := range uint64(20) {
			testModel(t, p, rand.New(rand.NewPCG(seed, 1)))
		}
	})
}

func testModel(t *testing.T, p *pair, r *rand.Rand) {
	var m model
	for step := range 400 {
		switch k := r.IntN(20); {
		case k < 9:
			m.append(t, p, payload(r.IntN(300), r.Uint64()))
		case k < 16:
			m.poll(t, p)
		case k < 18 && m.polled > 0:
			n := 1 + r.IntN(m.polled)
			p.receiver.Free(m.records[n-1].End)
			m.records, m.polled = m.records[n:], m.polled-n
		case k == 18:
			p.receiver.Rewind()
			m.polled = 0
		case k == 19 && step%4 == 0:
			m.restart(t, p)
		}
	}
	for m.polled < len(m.records) {
		m.poll(t, p)
	}
	m.poll(t, p) // finds nothing
	p.receiver.Free(p.receiver.Next())
}

func (m *model) append(t *testing.T, p *pair, b []byte) {
	pos, done, err := p.sender.Append(7, b)
	used := uint64(0)
	for _, rec := range m.records {
		used += rec.End - rec.Pos
	}
	if fits := used+Space(len(b)) <= p.receiver.Bytes(); err == nil && !fits {
		t.Fatalf("%d bytes appended to a ring with %d of %d used", len(b), used, p.receiver.Bytes())
	} else if err != nil && (!errors.Is(err, ErrFull) || fits && !p.options.remote) {
		t.Fatalf("%d bytes to a ring with %d of %d used: %v", len(b), used, p.receiver.Bytes(), err)
	}
	if err != nil {
		return
	}
	if !done {
		p.settle(t, 1)
	}
	m.records = append(m.records, Record{Pos: pos, End: pos + Space(len(b)), Payload: b})
}

func (m *model) poll(t *testing.T, p *pair) {
	t.Helper()
	rec, ok, err := p.receiver.Poll()
	if err != nil || ok != (m.polled < len(m.records)) {
		t.Fatalf("poll: ok %v, error %v, %d of %d polled", ok, err, m.polled, len(m.records))
	}
	if !ok {
		return
	}
	want := m.records[m.polled]
	m.polled++
	if rec.Pos != want.Pos || rec.End != want.End || !bytes.Equal(rec.Payload, want.Payload) {
		t.Fatalf("polled %d to %d, want %d to %d, same bytes: %v", rec.Pos, rec.End, want.Pos, want.End, bytes.Equal(rec.Payload, want.Payload))
	}
}

// restart opens the ring anew and attaches a new sender.
func (m *model) restart(t *testing.T, p *pair) {
	r, err := Open(p.memory, ringOffset, p.options.bytes)
	if err != nil {
		t.Fatal(err)
	}
	tail := p.sender.Tail()
	p.attach(t, r)
	if p.sender.Tail() != tail {
		t.Fatalf("tail is %d after the restart, was %d", p.sender.Tail(), tail)
	}
	m.polled = 0
}

// TestConcurrent has both ends at work at once; the sender never waits longer
// than it must, so the ring is mostly full.
func TestConcurrent(t *testing.T) {
	modes(t, 2048, func(t *testing.T, p *pair) {
		const rounds = 5000
		result := make(chan error, 1)
		go func() { result <- receiveAll(p, rounds) }()
		for i := range uint64(rounds) {
			if err := p.appendWhenFree(payload(int(i*i%200), i)); err != nil {
				t.Error(err)
				break
			}
		}
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

func receiveAll(p *pair, rounds int) error {
	var cs [8]rdma.Completion
	for i := uint64(0); i < uint64(rounds); {
		rec, ok, err := p.receiver.Poll()
		if err != nil {
			return err
		}
		if p.queues[1] != nil {
			if n := p.queues[1].Poll(cs[:]); n != 0 {
				return fmt.Errorf("writing the credit: %w", cs[0].Err)
			}
		}
		if !ok {
			runtime.Gosched()
			continue
		}
		if !bytes.Equal(rec.Payload, payload(int(i*i%200), i)) {
			return fmt.Errorf("record %d is damaged", i)
		}
		if i++; i%5 == 0 {
			p.receiver.Free(rec.End)
		}
		if p.queues[1] != nil {
			p.queues[1].Flush()
		}
	}
	return nil
}

// appendWhenFree appends once there is room, asking for the head now and then,
// and polls completions.
func (p *pair) appendWhenFree(b []byte) error {
	var cs [64]rdma.Completion
	const tagAppend, tagRefresh = 1, 2
	refreshing := false
	for {
		_, _, err := p.sender.Append(tagAppend, b)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrFull) && !errors.Is(err, rdma.ErrFull) {
			return err
		}
		if !refreshing {
			done, err := p.sender.Refresh(tagRefresh)
			if err != nil {
				return err
			}
			refreshing = !done
		}
		for refreshing {
			if err := p.completions(cs[:], func(tag uint64) {
				if tag == tagRefresh {
					p.sender.Refreshed()
					refreshing = false
				}
			}); err != nil {
				return err
			}
		}
		runtime.Gosched()
	}
	return p.completions(cs[:], func(uint64) {})
}

func (p *pair) completions(cs []rdma.Completion, each func(tag uint64)) error {
	if p.queues[0] == nil {
		return nil
	}
	p.queues[0].Flush()
	for _, c := range cs[:p.queues[0].Poll(cs)] {
		if c.Err != nil {
			return c.Err
		}
		each(c.Tag)
	}
	runtime.Gosched()
	return nil
}

// A transaction that has reserved gets its records in, wherever the ring's end
// is and whatever others append.
func TestReservationHolds(t *testing.T) {
	modes(t, 1024, func(t *testing.T, p *pair) {
		for round := range 150 {
			sizes := []int{round % 50, 8, 100 - round%50}
			total := uint64(0)
			for _, n := range sizes {
				total += Space(n)
			}
			if !p.sender.Reserve(total) {
				t.Fatalf("round %d: no space for %d bytes in an empty ring", round, total)
			}
			for err := error(nil); err == nil; {
				var done bool
				if _, done, err = p.sender.Append(7, make([]byte, 40)); err == nil && !done {
					p.settle(t, 1)
				}
			}
			if p.sender.Available() >= Space(40) {
				t.Fatalf("refused with %d bytes available", p.sender.Available())
			}
			for _, n := range sizes {
				_, done, err := p.sender.AppendReserved(7, payload(n, 1))
				if err != nil {
					t.Fatalf("round %d: reserved append: %v", round, err)
				}
				if !done {
					p.settle(t, 1)
				}
			}
			if n := p.sender.Reserved(); n != 0 {
				t.Fatalf("%d bytes are still reserved", n)
			}
			p.empty(t)
		}
	})
}

// empty takes all records and lets the sender know.
func (p *pair) empty(t *testing.T) {
	t.Helper()
	for {
		if _, ok, err := p.receiver.Poll(); err != nil {
			t.Fatal(err)
		} else if !ok {
			break
		}
	}
	p.receiver.Free(p.receiver.Next())
	p.refresh(t)
	if free := p.sender.Available(); free != p.sender.Bytes()-p.sender.Reserved() {
		t.Fatalf("%d bytes available of an empty ring of %d", free, p.sender.Bytes())
	}
}

func TestReserveAndRelease(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	s := p.sender
	all := s.Bytes()
	if all != p.receiver.Bytes() || all != 1024-controlBytes-frameBytes {
		t.Fatalf("ring of 1024 takes %d", all)
	}
	if s.Reserve(all+1) || !s.Reserve(all-100) || s.Reserve(101) || !s.Reserve(100) {
		t.Errorf("reserved %d of %d", s.Reserved(), all)
	}
	if _, _, err := s.Append(1, nil); !errors.Is(err, ErrFull) {
		t.Errorf("append when everything is reserved: %v", err)
	}
	s.Release(all - Space(8))
	if _, _, err := s.AppendReserved(1, make([]byte, 9)); !errors.Is(err, ErrReservation) {
		t.Errorf("append beyond the reservation: %v", err)
	}
	if _, _, err := s.AppendReserved(1, make([]byte, 8)); err != nil {
		t.Error(err)
	}
	if got, want := s.Available(), all-Space(8); got != want || s.Reserved() != 0 {
		t.Errorf("%d available, want %d; %d reserved", got, want, s.Reserved())
	}
	if _, _, err := s.Append(1, make([]byte, all)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("record larger than the ring: %v", err)
	}
	p.empty(t)
	if _, _, err := s.Append(1, make([]byte, all-frameBytes)); err != nil {
		t.Errorf("record of the ring's size: %v", err)
	}
	if rec := p.poll(t); len(rec.Payload) != int(all-frameBytes) {
		t.Errorf("record has %d bytes", len(rec.Payload))
	}
}

// Staging into memory that is not free would damage records.
func TestStageKeepsRecordsWhole(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	want := payload(700, 3)
	p.append(t, want)
	for _, n := range []int{0, 100, 200, 400, 900} {
		b := p.sender.Stage(n)
		for i := range b {
			b[i] = 0xff
		}
	}
	if rec := p.poll(t); !bytes.Equal(rec.Payload, want) {
		t.Error("staging changed a record")
	}
}

// Space comes back lazily: one credit for each half of the ring, and at once
// when asked for.
func TestCreditComesInHalves(t *testing.T) {
	for _, async := range []bool{false, true} {
		p := newPair(t, pairOptions{remote: true, async: async, bytes: 1024})
		for range 20 {
			before := p.sender.Head()
			p.append(t, make([]byte, 84))
			rec := p.poll(t)
			p.receiver.Free(rec.End)
			p.flush()
			half := (p.receiver.Head()-before)*2 >= p.options.bytes-controlBytes
			for half && p.sender.Head() == before {
				runtime.Gosched() // the credit is on its way
			}
			if got := p.sender.Head(); !half && got != before || half && got != p.receiver.Head() {
				t.Fatalf("sender's head went from %d to %d, receiver's is %d", before, got, p.receiver.Head())
			}
		}
		p.append(t, make([]byte, 84))
		p.empty(t)
	}
}

// A sender on the receiver's machine sees the head move at once.
func TestLocalSenderSeesEveryFree(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	for range 20 {
		p.append(t, make([]byte, 84))
		p.receiver.Free(p.poll(t).End)
		if p.sender.Available() != p.sender.Bytes() {
			t.Fatalf("%d bytes available", p.sender.Available())
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for _, remote := range []bool{false, true} {
		p := newPair(t, pairOptions{remote: remote, bytes: 1 << 16})
		head, body := make([]byte, 16), make([]byte, 112)
		n := testing.AllocsPerRun(50, func() { // less than a lap
			if _, _, err := p.sender.Append(1, head, body); err != nil {
				t.Fatal(err)
			}
			rec, ok, err := p.receiver.Poll()
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			p.receiver.Free(rec.End)
		})
		if n != 0 {
			t.Errorf("remote=%v: %v allocations per record", remote, n)
		}
	}
}
