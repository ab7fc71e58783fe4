package verbs

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

// tellMax is how long telling a machine that a key has ended may take.
const tellMax = time.Second

// An agent is the end of another machine's connection: the queue pair through which the card
// carries out that machine's operations. The agent's goroutine tells the other side where the
// memory of keys is.
type agent struct {
	nic     *NIC
	id      hosts.AgentID
	q       *Queue // the queue of the worker here
	life    uint64 // the life of the other machine
	dial    uint32 // the number of the connection in that life
	socket  net.Conn
	stream  net.Conn
	pair    pair
	told    map[rdma.Key]bool // keys that the other side knows; the NIC's mu guards it
	writing lockrank.Mutex[lockrank.Sending]
	ended   chan struct{}
}

// Socket implements hosts.Agent.
func (a *agent) Socket() net.Conn { return a.socket }

// Ended implements hosts.Agent.
func (a *agent) Ended() <-chan struct{} { return a.ended }

// run answers questions until the connection ends.
func (a *agent) run() {
	var b [questionBytes]byte
	for {
		if _, err := io.ReadFull(a.stream, b[:]); err != nil {
			return
		}
		if err := a.tell(decodeQuestion(b[:])); err != nil {
			return
		}
	}
}

// tell says where a piece of the memory of a key is.
func (a *agent) tell(q question) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	answer := a.lookUp(q)
	_, err := a.stream.Write(answer.encode())
	return err
}

// lookUp finds a piece of the memory of a key, makes the card register it, and notes that the
// other side knows of the key.
func (a *agent) lookUp(q question) answer {
	a.nic.mu.Lock()
	r := a.nic.mu.regions[q.key]
	if r != nil {
		a.told[q.key] = true // noted before the registration may end, so that the other side is told of the end
	}
	a.nic.mu.Unlock()
	if r == nil {
		return answer{kind: unknown, question: q}
	}
	size := r.memory.Size()
	to := answer{kind: outside, question: q, bytes: size, address: uint64(uintptr(r.memory.Pointer(0, size)))}
	piece, err := r.piece(a.nic, q.piece)
	switch {
	case err == nil:
		_, to.rkey = piece.keys()
		to.kind = registered
	case !errors.Is(err, errNoPiece):
		to.kind = unpinned
		if a.nic.cfg.Unpinned != nil {
			a.nic.cfg.Unpinned(err)
		}
	case q.piece == 0: // every registration has piece 0, until it ends
		to.kind = unknown
	}
	return to
}

// tellEnded tells the other side that the registration of a key has ended. If the other side
// does not take the message in time, the connection ends.
func (a *agent) tellEnded(k rdma.Key) {
	_ = a.socket.SetWriteDeadline(time.Now().Add(tellMax)) // also ends the write of an answer in progress
	a.writing.Lock()
	defer a.writing.Unlock()
	answer := answer{kind: ended, question: question{key: k}}
	if _, err := a.stream.Write(answer.encode()); err != nil {
		_ = a.socket.Close()
		return
	}
	_ = a.socket.SetWriteDeadline(time.Time{})
}

// dismiss ends the queue pair, and forgets the agent. When it returns, the card carries out nothing more for the other side.
func (nic *NIC) dismiss(a *agent) {
	_ = a.pair.fail() // if it cannot, the next call ends it, too
	a.q.take()        // take the rings that have come: some cards drop a queue pair's completions when it ends
	nic.leaked(a.pair.close())
	a.q.answering.Done()
	nic.mu.Lock()
	if nic.mu.agents[a.id] == a {
		delete(nic.mu.agents, a.id)
	}
	nic.mu.Unlock()
	close(a.ended)
}
