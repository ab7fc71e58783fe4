package tcp

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

const (
	bufferBytes = 64 << 10
	// chunkBytes is how much of a long READ or WRITE is copied at a time, a multiple of the line.
	chunkBytes = 32 << 10
)

// An agent carries out the operations of another machine's queue, in order, in the memory of this
// machine. One goroutine runs it.
type agent struct {
	copier  *hosts.Copier
	id      hosts.AgentID
	life    uint64   // the life of the other machine
	address string   // the address that the other machine has told
	dial    uint32   // the number of the connection in that life
	sibling *Queue   // the queue of the worker here, whose bell rings
	socket  net.Conn // closing it ends the agent
	in      *bufio.Reader
	out     *bufio.Writer
	number  uint64 // the number of the operation that is being carried out
	header  [answerBytes]byte
	chunk   []byte
	ended   chan struct{}
}

func newAgent(c *hosts.Copier, q *Queue, socket, stream net.Conn, id hosts.AgentID, g hosts.Greeting) *agent {
	return &agent{
		copier: c,
		id:     id, life: g.Life, address: g.Address, dial: g.Dial, sibling: q, socket: socket,
		in:    bufio.NewReaderSize(stream, bufferBytes),
		out:   bufio.NewWriterSize(answers{stream, q.counts}, bufferBytes),
		ended: make(chan struct{}),
	}
}

// Socket implements hosts.Agent.
func (a *agent) Socket() net.Conn { return a.socket }

// Ended implements hosts.Agent.
func (a *agent) Ended() <-chan struct{} { return a.ended }

// run carries out operations until the connection ends. It returns an error if the other side sends
// anything else.
func (a *agent) run() error {
	for {
		b, err := a.peek(frameBytes)
		if err != nil {
			return nil
		}
		f := decodeFrame(b)
		_, _ = a.in.Discard(frameBytes) // cannot fail: peek has buffered them
		if err := a.carryOut(f); err != nil {
			if errors.Is(err, hosts.ErrGarbage) {
				return fmt.Errorf("machine %d: %w", a.id.From, err)
			}
			return nil
		}
		a.number++
	}
}

// peek returns the next n bytes, at most bufferBytes. If it has to wait for them, it sends the
// answers first.
func (a *agent) peek(n int) ([]byte, error) {
	if a.in.Buffered() < n {
		if err := a.out.Flush(); err != nil {
			return nil, err
		}
	}
	return a.in.Peek(n)
}

// carryOut carries out one operation. An error ends the connection.
func (a *agent) carryOut(f frame) error {
	switch f.op {
	case rdma.OpRead:
		return a.read(f)
	case rdma.OpWrite, rdma.OpWriteRing:
		return a.write(f)
	case rdma.OpRing:
		a.sibling.bell.Ring()
		return a.end(f, nil)
	case opAsk:
		return a.end(f, nil)
	}
	return fmt.Errorf("%w: operation %d", hosts.ErrGarbage, f.op)
}

// write stores the bytes that follow, or skips them if the operation is refused.
func (a *agent) write(f frame) error {
	refused := a.copier.Check(f.key, f.off, f.bytes)
	for left := f.bytes; left > 0; {
		n := chunkAt(f.off+uint64(f.bytes-left), left)
		b, err := a.peek(n)
		if err != nil {
			return err
		}
		if refused == nil {
			// The whole has been checked before. If a later part fails all the same, the memory has been
			// taken away meanwhile: the operation is half done, so the connection breaks.
			if err := a.copier.Write(f.key, f.off+uint64(f.bytes-left), b); err != nil {
				if left < f.bytes {
					return err
				}
				refused = err
			}
		}
		_, _ = a.in.Discard(n)
		left -= n
	}
	if refused == nil && f.op == rdma.OpWriteRing {
		a.sibling.bell.Ring()
	}
	return a.end(f, refused)
}

// read answers with the bytes.
func (a *agent) read(f frame) error {
	if err := a.copier.Check(f.key, f.off, f.bytes); err != nil {
		return a.answer(answer{outcomeOf(err), 0, a.number})
	}
	if err := a.answer(answer{done, f.bytes, a.number}); err != nil {
		return err
	}
	for at, n := 0, 0; at < f.bytes; at += n {
		n = chunkAt(f.off+uint64(at), f.bytes-at)
		if cap(a.chunk) < n {
			a.chunk = make([]byte, n)
		}
		b := a.chunk[:n]
		// The answer has promised the bytes: without them the connection breaks.
		if err := a.copier.Read(f.key, f.off+uint64(at), b); err != nil {
			return err
		}
		if _, err := a.out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// chunkAt returns how many of the left bytes are copied next, from off on. Chunks end at the end of a
// line, so that each line is copied as a whole.
func chunkAt(off uint64, left int) int {
	return min(left, chunkBytes-int(off%rdma.LineBytes))
}

// end answers an operation if its queue has asked for an answer, or if it has failed.
func (a *agent) end(f frame, err error) error {
	if err == nil && f.flags&asks == 0 {
		return nil
	}
	return a.answer(answer{outcomeOf(err), 0, a.number})
}

func (a *agent) answer(an answer) error {
	_, err := a.out.Write(an.append(a.header[:0]))
	return err
}
