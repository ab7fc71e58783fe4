package rdma

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// An exchange has machine 0 send messages, one at a time, and machine 1 reply to each. Messages and
// replies are WRITEs with immediate, all of one length. The last word of each is its number.
type exchange struct {
	// serve, if not nil, is called at machine 1 for each request. It reads the request and writes the
	// reply, except their last words.
	serve func(request, reply []byte)

	client   *worker
	requests *nvram.Memory // machine 1's memory, which receives the requests
	replies  *nvram.Memory // machine 0's memory, which receives the replies
	request  []byte
	number   uint64

	answering       sync.Mutex // guards the fields below: bells may run at the same time
	server          rdma.Queue
	answered        uint64
	received, reply []byte
}

// newExchange makes machine 1 answer, and connects both machines.
func newExchange(w *network, bytes int, serve func(request, reply []byte)) (*exchange, error) {
	x := &exchange{
		serve: serve, requests: w.memory[1], replies: w.memory[0],
		request: make([]byte, bytes), received: make([]byte, bytes), reply: make([]byte, bytes),
	}
	server, err := w.nics[1].Open(0, x.answer)
	if err != nil {
		return nil, err
	}
	x.answering.Lock()
	x.server = server
	x.answering.Unlock()
	if x.client, err = newWorker(w.nics[0], 0); err != nil {
		return nil, err
	}
	return x, x.do(nil)
}

// last returns the offset of the last word.
func (x *exchange) last() uint64 { return uint64(len(x.request)) - 8 }

// answer is the bell of machine 1: it answers the request that has arrived.
func (x *exchange) answer() {
	x.answering.Lock()
	defer x.answering.Unlock()
	n := x.requests.Load(x.last())
	if x.server == nil || n == x.answered {
		return // machine 1 has no queue yet, or no new request has arrived
	}
	x.answered = n
	if x.serve != nil {
		x.requests.CopyOut(x.received, 0)
		x.serve(x.received, x.reply)
	}
	putWord(x.reply[x.last():], n)
	_, _ = x.server.WriteRing(0, key, 0, x.reply, rdma.Unsignalled) // after an error, machine 0 gets no reply and reports that
	x.server.Flush()
}

// do sends a request and waits for the reply. It copies the reply into reply, if that is not nil.
func (x *exchange) do(reply []byte) error {
	x.number++
	putWord(x.request[x.last():], x.number)
	if _, err := x.client.q.WriteRing(1, key, 0, x.request, rdma.Unsignalled); err != nil {
		return fmt.Errorf("bench/rdma: %w", err)
	}
	x.client.q.Flush()
	err := x.client.await(func() (bool, error) { return x.replies.Load(x.last()) == x.number, nil })
	if err == nil && reply != nil {
		x.replies.CopyOut(reply, 0)
	}
	return err
}

// messages measures messages with their replies, one at a time.
func (b *bed) messages(bytes int) error {
	return b.withNetwork(2, largest, func(w *network) error {
		x, err := newExchange(w, bytes, nil)
		if err != nil {
			return err
		}
		return b.row.time(w, func() (n uint64, err error) {
			for end := time.Now().Add(b.turn); time.Now().Before(end) && err == nil; n++ {
				err = x.do(nil)
			}
			return n, err
		})
	})
}

// A sequencer gives out consecutive numbers, at machine 1 (Design Guidelines, section 4.2). A
// request says how many numbers are wanted; the reply has the first.
type sequencer struct{ next uint64 }

func (s *sequencer) serve(request, reply []byte) {
	putWord(reply, s.next)
	s.next += binary.LittleEndian.Uint64(request)
}

// numbers measures how many numbers a sequencer gives out. One message asks for a number for each of
// several callers.
func (b *bed) numbers(callers int, serve func(request, reply []byte)) error {
	return b.withNetwork(2, largest, func(w *network) error {
		x, err := newExchange(w, 16, serve)
		if err != nil {
			return err
		}
		putWord(x.request, uint64(callers))
		reply := make([]byte, 16)
		return b.row.time(w, func() (uint64, error) {
			got := uint64(0)
			for end := time.Now().Add(b.turn); time.Now().Before(end); got += uint64(callers) {
				if err := x.do(reply); err != nil {
					return 0, err
				}
				if first := binary.LittleEndian.Uint64(reply); first != got {
					return 0, fmt.Errorf("%w: number %d after %d numbers", errTwice, first, got)
				}
			}
			return got, nil
		})
	})
}
