package ring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// TestHalfWritten lets the words of a record's write arrive in rising order,
// and in random orders with the last word last: only the last one makes it a
// record. A process that starts on what was there before sees the records
// before it and nothing else.
func TestHalfWritten(t *testing.T) {
	const size = 512
	for lap := range 40 {
		p := newPair(t, pairOptions{remote: true, bytes: size})
		for range lap { // move to another place in the ring
			p.append(t, payload(20, 1))
			p.empty(t)
		}
		kept := p.append(t, payload(33, 2))
		before := dump(p.memory)
		want := payload(75, 3)
		p.append(t, want)
		after := dump(p.memory)
		tail := kept + Space(33)
		order := writtenWords(tail, Space(75)+frameBytes, size-controlBytes)
		rand.New(rand.NewPCG(uint64(lap), 0)).Shuffle((len(order)-1)*(lap%2), func(i, j int) { order[i], order[j] = order[j], order[i] })
		p.memory.CopyIn(0, before)
		for i, off := range order {
			p.memory.Store(off, binary.NativeEndian.Uint64(after[off:]))
			r, err := Open(p.memory, ringOffset, size)
			if err != nil {
				t.Fatalf("lap %d, after word %d: %v", lap, i, err)
			}
			s, err := r.State()
			if complete := i == len(order)-1; err != nil || !complete && s.Tail != tail || complete && s.Tail != tail+Space(75) {
				t.Fatalf("lap %d, after word %d of %d: tail is %d, was %d: %v", lap, i, len(order), s.Tail, tail, err)
			}
		}
	}
}

func dump(m *nvram.Memory) []byte {
	b := make([]byte, m.Size())
	m.CopyOut(b, 0)
	return b
}

// writtenWords lists the offsets of n bytes of the stream from pos, in order.
func writtenWords(pos, n, data uint64) (offsets []uint64) {
	for at := pos; at < pos+n; at += wordBytes {
		offsets = append(offsets, ringOffset+controlBytes+at%data)
	}
	return offsets
}

// A new sender overwrites what a dead one left half written.
func TestSenderAfterHalfWrittenRecord(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	p.append(t, payload(10, 1))
	p.word(p.sender.Tail(), stateOf(p.sender.tail.seal, 77)) // and nothing else
	r, err := Open(p.memory, ringOffset, 1024)
	if err != nil {
		t.Fatal(err)
	}
	p.attach(t, r)
	p.poll(t)
	if _, ok, err := r.Poll(); ok || err != nil {
		t.Fatalf("half a record: ok %v, error %v", ok, err)
	}
	p.append(t, payload(20, 2))
	if rec := p.poll(t); !bytes.Equal(rec.Payload, payload(20, 2)) {
		t.Error("record is not what was appended")
	}
}

// A seal of the lap before, at the very place, does not complete a record.
func TestSealOfEarlierLap(t *testing.T) {
	p := newPair(t, pairOptions{bytes: controlBytes + 7*64}) // records of one size: frames coincide
	for i := range 50 {
		p.word(p.sender.Tail(), stateOf(p.sender.tail.seal, 48)) // of the record, only this arrives
		if _, ok, err := p.receiver.Poll(); ok || err != nil {
			t.Fatalf("record %d: half of it is seen: ok %v, error %v", i, ok, err)
		}
		p.append(t, payload(48, uint64(i)))
		if rec := p.poll(t); !bytes.Equal(rec.Payload, payload(48, uint64(i))) {
			t.Fatalf("record %d is not what was appended", i)
		}
		p.receiver.Free(p.receiver.Next())
	}
}

// TestPayloadCannotForge fills a ring with its own image and with frames of
// other laps: none of that is a record afterwards.
func TestPayloadCannotForge(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	for range 200 {
		image := dump(p.memory)[ringOffset+controlBytes:]
		p.append(t, image[:600])
		if rec := p.poll(t); !bytes.Equal(rec.Payload, image[:600]) {
			t.Fatal("record is not what was appended")
		}
		if rec, ok, err := p.receiver.Poll(); ok || err != nil {
			t.Fatalf("payload was taken for a record at %d: %v", rec.Pos, err)
		}
		p.empty(t)
	}
}

func TestDamageIsReported(t *testing.T) {
	seal0 := func(p *pair) uint64 { return p.receiver.next.seal }
	for name, damage := range map[string]func(p *pair) uint64{
		"zeroed":             func(p *pair) uint64 { return 0 },
		"garbage":            func(p *pair) uint64 { return 0xdeadbeefdeadbeef },
		"other seal's state": func(p *pair) uint64 { return stateOf(seal0(p)+1<<40, 8) },
		"length of the ring": func(p *pair) uint64 { return stateOf(seal0(p), p.options.bytes) },
		"length just beyond": func(p *pair) uint64 { return stateOf(seal0(p), p.receiver.Bytes()-frameBytes+1) },
		"largest length":     func(p *pair) uint64 { return stateOf(seal0(p), noRecord-1) },
		"largest, rounds up": func(p *pair) uint64 { return stateOf(seal0(p), noRecord-7) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, pairOptions{bytes: 1024})
			word := damage(p)
			p.word(p.receiver.Next(), word)
			for range 2 {
				_, ok, err := p.receiver.Poll()
				var e *CorruptError
				if ok || !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Position != p.receiver.Next() {
					t.Fatalf("poll: ok %v, error %v", ok, err)
				}
			}
			if _, err := p.receiver.State(); !errors.Is(err, ErrCorrupt) {
				t.Errorf("state: %v", err)
			}
			p.receiver.Reset(99)
			p.attach(t, p.receiver)
			p.append(t, []byte("whole again"))
			if rec := p.poll(t); string(rec.Payload) != "whole again" {
				t.Errorf("after reset: %q", rec.Payload)
			}
		})
	}
}

// A length that fits the ring but runs over records that are not freed.
func TestRecordOverUnfreedSpace(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	p.append(t, make([]byte, 500))
	p.poll(t)
	p.word(p.receiver.Next(), stateOf(p.receiver.next.seal, 600))
	if _, _, err := p.receiver.Poll(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("poll: %v", err)
	}
}

func TestOpenChecks(t *testing.T) {
	for name, c := range map[string]struct {
		off  uint64 // of the word to change
		word uint64
		want error
	}{
		"nothing there":     {magicAt, 0, ErrUnformatted},
		"something else":    {magicAt, 12345, ErrUnformatted},
		"other size":        {bytesAt, 1024, ErrCorrupt},
		"other nonce":       {nonceAt, 1, ErrCorrupt},
		"head misaligned":   {headAt, 4, ErrCorrupt},
		"head elsewhere":    {headAt, 8, ErrCorrupt},
		"head out of range": {headAt, math.MaxUint64 &^ 7, ErrCorrupt},
		"seal":              {controlBytes + wordBytes, 0, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, pairOptions{bytes: 1024})
			p.memory.Store(ringOffset+c.off, c.word)
			if _, err := Open(p.memory, ringOffset, 1024); !errors.Is(err, c.want) {
				t.Errorf("open: %v, want %v", err, c.want)
			}
		})
	}
}

func TestBadPlaces(t *testing.T) {
	m := nvram.NewMemory(4096)
	for _, c := range []struct{ off, size uint64 }{
		{0, 0}, {0, BytesMin - 64}, {0, 1000}, {8, 1024}, {0, 8192}, {4096, 1024}, {3136, 1024},
		{math.MaxUint64 &^ 63, 1024}, {0, BytesMax + 64},
	} {
		if _, err := Create(m, c.off, c.size, 1); !errors.Is(err, ErrBytes) {
			t.Errorf("create %d at %d: %v", c.size, c.off, err)
		}
		if _, err := Open(m, c.off, c.size); !errors.Is(err, ErrBytes) {
			t.Errorf("open %d at %d: %v", c.size, c.off, err)
		}
	}
	if _, err := Create(m, 3072, 1024, 1); err != nil {
		t.Errorf("at the end: %v", err)
	}
}

// A receiver that claims to have freed what was never written is not believed.
func TestCreditIsChecked(t *testing.T) {
	for name, head := range map[string]uint64{"beyond the tail": 1 << 20, "misaligned": 12} {
		p := newPair(t, pairOptions{remote: true, bytes: 1024})
		p.append(t, make([]byte, 64))
		p.credit.Store(creditOffset, head)
		if n := p.sender.Available(); n != 0 {
			t.Errorf("%s: %d bytes available", name, n)
		}
		if p.sender.Reserve(8) {
			t.Errorf("%s: reserved", name)
		}
		if _, _, err := p.sender.Append(1, nil); !errors.Is(err, ErrCorrupt) || !errors.Is(p.sender.Err(), ErrCorrupt) {
			t.Errorf("%s: append: %v", name, err)
		}
	}
	p := newPair(t, pairOptions{remote: true, bytes: 1024}) // late news is no damage
	p.append(t, make([]byte, 64))
	p.poll(t)
	p.empty(t)
	p.credit.Store(creditOffset, 0)
	if got := p.sender.Available(); got != p.sender.Bytes() {
		t.Errorf("%d bytes available after an old credit", got)
	}
}

// An append that fails at once leaves the ring as it was; one that fails later
// ends the sender, and the receiver attaches another.
func TestBrokenConnection(t *testing.T) {
	p := newPair(t, pairOptions{remote: true, bytes: 1024})
	p.append(t, []byte("one"))
	p.network.Cut(senderMachine, receiverMachine)
	if _, _, err := p.sender.Append(1, []byte("lost")); !errors.Is(err, rdma.ErrBroken) {
		t.Fatalf("append across the cut: %v", err)
	}
	if _, err := p.sender.Refresh(1); !errors.Is(err, rdma.ErrBroken) {
		t.Fatalf("refresh across the cut: %v", err)
	}
	p.network.Mend(senderMachine, receiverMachine)
	p.append(t, []byte("two"))
	for _, want := range []string{"one", "two"} {
		if rec := p.poll(t); string(rec.Payload) != want {
			t.Errorf("record %q, want %q", rec.Payload, want)
		}
	}
}

func TestFailedSender(t *testing.T) {
	p := newPair(t, pairOptions{remote: true, async: true, bytes: 1024})
	p.append(t, []byte("one"))
	old := p.sender
	if !old.Reserve(100) {
		t.Fatal("no space")
	}
	p.network.Cut(senderMachine, receiverMachine)
	old.Fail(rdma.ErrBroken)
	old.Fail(rdma.ErrKey) // the first counts
	if _, _, err := old.Append(1, nil); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("append: %v", err)
	}
	if _, _, err := old.AppendReserved(1, nil); !errors.Is(err, rdma.ErrBroken) {
		t.Errorf("append reserved: %v", err)
	}
	if old.Reserve(8) {
		t.Error("reserved by a failed sender")
	}
	p.network.Mend(senderMachine, receiverMachine)
	p.attach(t, p.receiver)
	p.append(t, []byte("two"))
	for _, want := range []string{"one", "two"} {
		if rec := p.poll(t); string(rec.Payload) != want {
			t.Errorf("record %q, want %q", rec.Payload, want)
		}
	}
}

// The credit that cannot be written now is written with a later Free.
func TestCreditAfterCut(t *testing.T) {
	p := newPair(t, pairOptions{remote: true, bytes: 1024})
	for range 6 {
		p.append(t, make([]byte, 84))
	}
	p.network.Cut(senderMachine, receiverMachine)
	for range 5 {
		p.receiver.Free(p.poll(t).End)
	}
	if p.sender.Head() != 0 {
		t.Error("credit came across the cut")
	}
	p.network.Mend(senderMachine, receiverMachine)
	p.receiver.Free(p.poll(t).End)
	if p.sender.Head() != p.receiver.Head() {
		t.Errorf("sender's head is %d, receiver's %d", p.sender.Head(), p.receiver.Head())
	}
}

// What a sender from before a Reset writes is not a record.
func TestResetShutsOutOldSender(t *testing.T) {
	p := newPair(t, pairOptions{bytes: 1024})
	p.append(t, []byte("before"))
	p.poll(t)
	old := p.sender // about to append where the ring begins after Reset
	p.receiver.Reset(0x777)
	p.attach(t, p.receiver)
	if p.receiver.Head() != p.receiver.Next() || p.sender.Available() != p.sender.Bytes() {
		t.Error("ring is not empty after Reset")
	}
	if _, _, err := old.Append(1, []byte("late")); err != nil {
		t.Fatal(err)
	}
	if rec, ok, _ := p.receiver.Poll(); ok {
		t.Errorf("record %q of the old sender was accepted", rec.Payload)
	}
	r, err := Open(p.memory, ringOffset, 1024)
	if err == nil {
		_, err = r.State()
	}
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// The credit may hold anything when a sender attaches, and one for the ring
// before a Reset may come late.
func TestCreditFromBefore(t *testing.T) {
	p := newPair(t, pairOptions{remote: true, bytes: 1024})
	for range 20 {
		p.append(t, make([]byte, 100))
		p.receiver.Free(p.poll(t).End)
	}
	late := p.receiver.Head()
	p.receiver.Reset(5)
	p.attach(t, p.receiver)
	p.credit.Store(creditOffset, late)
	p.append(t, make([]byte, 100))
	if got, want := p.sender.Available(), p.sender.Bytes()-Space(100); got != want || p.sender.Err() != nil {
		t.Errorf("%d bytes available, want %d: %v", got, want, p.sender.Err())
	}
	r, err := Create(p.memory, ringOffset, 1024, 6)
	if err != nil {
		t.Fatal(err)
	}
	p.credit.Store(creditOffset, 1<<50)
	p.attach(t, r)
	if p.sender.Available() != p.sender.Bytes() || p.sender.Err() != nil {
		t.Errorf("%d bytes available: %v", p.sender.Available(), p.sender.Err())
	}
}

func TestFreeOfNonsensePanics(t *testing.T) {
	for name, pos := range map[string]func(p *pair) uint64{
		"not polled": func(p *pair) uint64 { return p.sender.Tail() },
		"before":     func(p *pair) uint64 { return p.receiver.Head() - 8 },
		"misaligned": func(p *pair) uint64 { return p.receiver.Head() + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, pairOptions{bytes: 1024})
			p.append(t, make([]byte, 64))
			p.receiver.Free(p.poll(t).End)
			p.append(t, make([]byte, 64))
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			p.receiver.Free(pos(p))
		})
	}
}

// FuzzReceiver polls rings whose memory holds anything. The first byte says how
// much of a proper ring is left in place, so that the fuzzer gets past the
// control line; records must lie within the ring, and only ErrCorrupt and
// ErrUnformatted may come back.
func FuzzReceiver(f *testing.F) {
	const size = 512
	f.Add(byte(0), uint16(0), []byte{})
	f.Add(byte(3), uint16(controlBytes), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(byte(9), uint16(headAt), []byte{16, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, records byte, at uint16, garbage []byte) {
		p := newPair(t, pairOptions{bytes: size})
		for i := range int(records % 16) {
			if _, _, err := p.sender.Append(1, payload(i*5, uint64(i))); err != nil {
				p.empty(t)
			}
		}
		b := dump(p.memory)
		copy(b[ringOffset+uint64(at)%size:ringOffset+size], garbage)
		p.memory.CopyIn(0, b)
		checkPolls(t, p.receiver, size)
		r, err := Open(p.memory, ringOffset, size)
		if err == nil {
			checkPolls(t, r, size)
			_, err = r.State()
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnformatted) {
			t.Errorf("unexpected error: %v", err)
		}
	})
}

func checkPolls(t *testing.T, r *Receiver, size uint64) {
	for range size { // a ring cannot hold more records
		rec, ok, err := r.Poll()
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		if rec.End-r.Head() > r.Bytes() || Space(len(rec.Payload)) != rec.End-rec.Pos {
			t.Fatalf("record %d to %d with %d bytes in a ring from %d", rec.Pos, rec.End, len(rec.Payload), r.Head())
		}
		_ = bytes.Clone(rec.Payload) // touches all of it
	}
	t.Fatal("more records than fit")
}
