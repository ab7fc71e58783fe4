package ring

import (
	"runtime"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/local"
)

const (
	senderMachine   rdma.MachineID = 1
	receiverMachine rdma.MachineID = 2
	ringKey         rdma.Key       = 10
	creditKey       rdma.Key       = 11
	ringOffset                     = 128 // of the ring in its memory
	creditOffset                   = 64
)

type pairOptions struct {
	remote bool // through a NIC
	async  bool
	bytes  uint64 // of the ring
	bell   func() // of the receiver
}

// A pair is a ring with both of its ends.
type pair struct {
	options  pairOptions
	memory   *nvram.Memory // of the ring
	credit   *nvram.Memory
	network  *local.Network
	queues   [2]rdma.Queue // sender's, receiver's; nil if not remote
	sender   *Sender
	receiver *Receiver
}

func newPair(tb testing.TB, o pairOptions) *pair {
	tb.Helper()
	p := &pair{options: o, memory: nvram.NewMemory(int64(o.bytes) + 2*ringOffset), credit: nvram.NewMemory(256)}
	if o.remote {
		p.connect(tb)
	}
	r, err := Create(p.memory, ringOffset, o.bytes, 0x1234567)
	if err != nil {
		tb.Fatal(err)
	}
	p.attach(tb, r)
	return p
}

func (p *pair) connect(tb testing.TB) {
	p.network = local.NewNetwork(local.Options{Async: p.options.async})
	for i, m := range []rdma.MachineID{senderMachine, receiverMachine} {
		nic, err := p.network.Join(m)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { nic.Close() })
		key, memory, bell := creditKey, p.credit, func() {}
		if m == receiverMachine {
			key, memory, bell = ringKey, p.memory, p.options.bell
		}
		if p.queues[i], err = nic.Open(0, bell); err != nil {
			tb.Fatal(err)
		}
		if err := nic.Register(key, memory); err != nil {
			tb.Fatal(err)
		}
	}
}

// attach gives the ring of r a new sender.
func (p *pair) attach(tb testing.TB, r *Receiver) {
	tb.Helper()
	s, err := r.State()
	if err != nil {
		tb.Fatal(err)
	}
	p.receiver = r
	if !p.options.remote {
		p.sender = NewLocalSender(s, p.memory, ringOffset)
		return
	}
	r.Feedback(p.queues[1], senderMachine, creditKey, creditOffset)
	p.sender = NewSender(s, Link{Queue: p.queues[0], To: receiverMachine, Key: ringKey, Offset: ringOffset,
		Credit: p.credit, CreditOffset: creditOffset})
}

// flush ends the batches of both ends.
func (p *pair) flush() {
	for _, q := range p.queues {
		if q != nil {
			q.Flush()
		}
	}
}

// settle waits for n pending operations of the sender, and fails for errors.
func (p *pair) settle(tb testing.TB, n int) {
	tb.Helper()
	p.flush()
	var cs [16]rdma.Completion
	for n > 0 {
		got := p.queues[0].Poll(cs[:])
		for _, c := range cs[:got] {
			if c.Err != nil {
				tb.Fatal(c.Err)
			}
		}
		n -= got
		runtime.Gosched()
	}
}

// append appends and waits.
func (p *pair) append(tb testing.TB, parts ...[]byte) uint64 {
	tb.Helper()
	pos, done, err := p.sender.Append(7, parts...)
	if err != nil {
		tb.Fatal(err)
	}
	if !done {
		p.settle(tb, 1)
	}
	return pos
}

// refresh makes the sender know all that the receiver has freed. Nothing else may be pending.
func (p *pair) refresh(tb testing.TB) {
	tb.Helper()
	done, err := p.sender.Refresh(8)
	if err != nil {
		tb.Fatal(err)
	}
	if !done {
		p.settle(tb, 1)
		p.sender.Refreshed()
	}
}

// poll takes the next record, which must be there.
func (p *pair) poll(tb testing.TB) Record {
	tb.Helper()
	rec, ok, err := p.receiver.Poll()
	if err != nil || !ok {
		tb.Fatalf("no record at %d: ok %v, error %v", p.receiver.Next(), ok, err)
	}
	return rec
}

// word stores v at the position of the ring, as nobody should.
func (p *pair) word(pos, v uint64) {
	p.memory.Store(ringOffset+controlBytes+pos%(p.options.bytes-controlBytes), v)
}
