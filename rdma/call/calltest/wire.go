// Package calltest holds back the calls between machines until a test delivers them, so that a test
// can drive a protocol message by message.
//
// A Wire stands between the machines and their NICs. It passes everything on until Hold; from
// then on each request and each reply waits for Deliver or Drop. Repetitions of a request are
// one message: a test that drops it drops them all.
package calltest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/rdma"
)

// A Message is a request or a reply that is held.
type Message struct {
	From, To rdma.MachineID
	Kind     uint8
	IsReply  bool
	// Failure is the error text in a reply.
	Failure string
	Body    []byte

	key      key
	datagram []byte
}

// A key identifies a message: repetitions of a request have the same key.
type key struct {
	caller  uint64 // the caller's incarnation
	id      uint64 // the number of the call, counted by the caller
	isReply bool
}

// A Wire carries the datagrams of some machines. It is safe for concurrent use.
type Wire struct {
	// Sent, if not nil, is called with each message that is held. It must not wait.
	Sent func(Message)

	mu struct {
		sync.Mutex
		holds     bool
		held      []Message
		known     map[key]bool // messages that have ever been held
		receivers map[rdma.MachineID]func(from rdma.MachineID, b []byte)
	}
}

// Hold makes the wire hold messages back from now on.
func (w *Wire) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.holds, w.mu.known = true, make(map[key]bool)
}

// Held returns the messages that are held, ordered by sender, addressee and kind, and then in the
// order in which they were sent.
func (w *Wire) Held() []Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := slices.Clone(w.mu.held)
	slices.SortStableFunc(held, func(a, b Message) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
	return held
}

// Deliver delivers a held message, even if its sender is gone.
func (w *Wire) Deliver(m Message) {
	w.Drop(m)
	w.mu.Lock()
	receive := w.mu.receivers[m.To]
	w.mu.Unlock()
	if receive != nil {
		receive(m.From, m.datagram)
	}
}

// Drop discards a held message, and later repetitions of it.
func (w *Wire) Drop(m Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.held = slices.DeleteFunc(w.mu.held, func(x Message) bool { return x.key == m.key })
}

// Wrap returns a NIC whose datagrams go through the wire.
func (w *Wire) Wrap(n rdma.NIC) rdma.NIC { return nic{n, w} }

type nic struct {
	rdma.NIC
	wire *Wire
}

// Datagram implements rdma.NIC.
func (n nic) Datagram(to rdma.MachineID, b []byte) error {
	m, isMessage := parse(b)
	if !isMessage || !n.wire.hold(&m, n, to) {
		return n.NIC.Datagram(to, b)
	}
	return nil
}

// Datagrams implements rdma.NIC.
func (n nic) Datagrams(f func(from rdma.MachineID, b []byte)) {
	w := n.wire
	w.mu.Lock()
	if w.mu.receivers == nil {
		w.mu.receivers = make(map[rdma.MachineID]func(rdma.MachineID, []byte))
	}
	w.mu.receivers[n.Machine()] = f
	w.mu.Unlock()
	n.NIC.Datagrams(f)
}

// hold keeps m if the wire holds messages back, and then returns true; otherwise the caller
// sends m on. A repetition of a message that has been held is dropped.
func (w *Wire) hold(m *Message, n nic, to rdma.MachineID) bool {
	m.From, m.To = n.Machine(), to
	w.mu.Lock()
	holds, isKnown := w.mu.holds, w.mu.known[m.key]
	if holds && !isKnown {
		w.mu.known[m.key] = true
		w.mu.held = append(w.mu.held, *m)
	}
	w.mu.Unlock()
	if holds && !isKnown && w.Sent != nil {
		w.Sent(*m)
	}
	return holds
}

// Parts of package call's datagrams; package call documents their layout.
const (
	headerBytes = 32
	typeReply   = 3
	failed      = 1 // status: body is a code and a text
	codeBytes   = 1
)

func parse(b []byte) (m Message, isMessage bool) {
	if len(b) < headerBytes {
		return m, false
	}
	le := binary.LittleEndian
	m = Message{Kind: b[2], IsReply: b[1] == typeReply, Body: slices.Clone(b[headerBytes:]), datagram: slices.Clone(b)}
	m.key = key{caller: le.Uint64(b[16:]), id: le.Uint64(b[8:]), isReply: m.IsReply}
	if m.IsReply {
		m.key.caller = le.Uint64(b[24:]) // the addressee of a reply
		if b[3] == failed && len(m.Body) >= codeBytes {
			m.Failure, m.Body = string(m.Body[codeBytes:]), nil
		} else if b[3] != 0 {
			m.Failure = statuses[min(int(b[3]), len(statuses)-1)]
		}
	}
	return m, true
}

// statuses are the values of Failure by status, for replies that bring no error text.
var statuses = [...]string{"", "", "another life", "not handled here", "at work"}
