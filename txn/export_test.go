package txn

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
	"github.com/farmsql/farmsql/txn/worker"
)

// OnStep makes m call f with its steps; no transaction may be running on m.
func (m *Machine) OnStep(f func(step.Step)) { m.Replicas.Step = f }

// OnStepAtWork is OnStep while others use the machine.
func (m *Machine) OnStepAtWork(f func(step.Step)) {
	for _, w := range m.Inspect().Workers() { // who tells of steps holds one
		w.Lock()
		defer w.Unlock()
	}
	m.OnStep(f)
}

// OnFenced makes the machine call f with fenced peers.
func (m *Machine) OnFenced(f func(rdma.MachineID, error)) { m.Inspect().OnFenced(f) }

// NIC returns the machine's NIC.
func (m *Machine) NIC() rdma.NIC { return m.Replicas.NIC }

// Queue returns the queue of a worker. Use it within Locked.
func (m *Machine) Queue(worker int) rdma.Queue { return m.Inspect().Queue(worker) }

// WrapQueue puts what wrap returns between a worker and its queue, on which nothing may be pending.
func (m *Machine) WrapQueue(worker int, wrap func(rdma.Queue) rdma.Queue) {
	m.Inspect().WrapQueue(worker, wrap)
}

// A LogUse is how much has been appended to a log, and how much is reserved.
type LogUse struct{ Tail, Reserved uint64 }

// LogUse returns that of the log that a worker writes to a peer. It may be called
// from OnStep's function, under the worker's lock, while nothing else runs.
func (m *Machine) LogUse(worker int, peer rdma.MachineID) LogUse {
	log := m.Inspect().Log(worker, peer)
	return LogUse{log.Tail(), log.Reserved()}
}

// Locked runs f with a worker locked.
func (m *Machine) Locked(worker int, f func()) { m.Inspect().Workers()[worker].Locked(f) }

// Workers returns how many workers there are.
func (m *Machine) Workers() int { return len(m.Inspect().Workers()) }

// LogKey and MessagesKey name what a sender's worker writes to.
func LogKey(sender rdma.MachineID, worker uint16) rdma.Key { return route.LogKey(sender, worker, 0) }
func MessagesKey(sender rdma.MachineID, worker uint16) rdma.Key {
	return route.MessagesKey(sender, worker, 0)
}

// AppendLog and AppendMessage append anything to what a worker writes to a peer.
func (m *Machine) AppendLog(worker int, to rdma.MachineID, b []byte) {
	if err := m.Inspect().AppendLog(worker, to, b); err != nil {
		panic(err)
	}
}

func (m *Machine) AppendMessage(worker int, to rdma.MachineID, b []byte) {
	if err := m.Inspect().AppendMessage(worker, to, b); err != nil {
		panic(err)
	}
}

// Message encodes a message.
func Message(kind, a uint8, b uint16, c uint32, tag uint64, body []byte) []byte {
	m := message.Message{Kind: message.Kind(kind), A: a, B: b, C: c, Tag: tag}
	return append(m.AppendHeader(nil), body...)
}

// Broken returns the reason why a peer of a worker is fenced.
func (m *Machine) Broken(worker int, peer rdma.MachineID) error {
	return m.Inspect().Broken(worker, peer)
}

// Unsent returns how many messages to a peer of a worker wait.
func (m *Machine) Unsent(worker int, peer rdma.MachineID) int {
	return m.Inspect().Unsent(worker, peer)
}

// Idle returns what is left over although nothing is going on.
func (m *Machine) Idle() error { return m.Inspect().Idle() }

// IsLog, IsMessages and IsRegion say what a key is of.
func IsLog(k rdma.Key) bool      { return route.KindOf(k) == route.KeyLog }
func IsMessages(k rdma.Key) bool { return route.KindOf(k) == route.KeyMessages }
func IsRegion(k rdma.Key) bool   { return route.KindOf(k) == route.KeyRegion }

// Version returns the version of the object p at this machine, a replica.
func (m *Machine) Header(p region.Ptr) region.Header {
	return m.Route(p.Addr.Region()).Local.Header(p.Addr.Offset())
}

// ReplicasOf returns where the object p lives, the primary first.
func (m *Machine) ReplicasOf(p region.Ptr) []rdma.MachineID {
	return m.Route(p.Addr.Region()).Replicas()
}

// LogRecords returns the records that lie in the log that sender's worker
// writes to m.
func (m *Machine) LogRecords(sender rdma.MachineID, worker int) ([]record.Record, error) {
	log, err := m.Inspect().Received(sender, worker)
	if err != nil {
		return nil, err
	}
	rx, err := record.OpenLog(log)
	if err != nil {
		return nil, err
	}
	var records []record.Record
	for {
		raw, ok, err := rx.Poll()
		if err != nil || !ok {
			return records, err
		}
		var r record.Record
		if err := record.Decode(append([]byte(nil), raw.Payload...), &r); err != nil {
			return records, err
		}
		records = append(records, r)
	}
}

// LastID names the transaction whose commit the worker has begun most recently.
func (m *Machine) LastID(worker int) record.ID { return m.Inspect().LastID(worker) }

// LedgerNames is how far above the low bound a transaction can be named.
const LedgerNames = record.LedgerNames

// OnSilent makes the machine call f with silent peers.
func (m *Machine) OnSilent(f func(rdma.MachineID)) { m.Inspect().OnSilent(f) }

// Waits reports whether anything waits for an answer of a peer.
func (m *Machine) Waits() bool { return m.Inspect().Waits() }

// Reserve reserves storage for a part of this machine's replica of a region, as a request of a
// primary does.
func (m *Machine) Reserve(id region.ID, off, n uint64) error {
	return m.Inspect().Reserve(message.Reservation{Region: id, Off: off, Bytes: n})
}

// HoldAnnexes has the machine make annexes only once let is called. It says on asked that
// it is to make one.
func (m *Machine) HoldAnnexes() (asked <-chan struct{}, let func()) {
	begun, until, before := make(chan struct{}, 1), make(chan struct{}), m.Replicas.Annex
	m.Replicas.Annex = func(number uint64, bytes int64) (*nvram.Memory, error) {
		begun <- struct{}{}
		<-until
		return before(number, bytes)
	}
	return begun, func() { close(until) }
}

// AskAnnex asks a peer to make an annex for records that a worker writes to it.
func (m *Machine) AskAnnex(by int, to rdma.MachineID, bytes uint64) (number uint64, err error) {
	s := &state{m: m, w: m.Inspect().Workers()[by], ctx: context.Background()}
	var a ownAnnex
	err = s.askAnnex(&worker.Participant{Machine: to}, &a, bytes)
	return a.Number, err
}

// FillAnnex writes to an annex at a peer.
func (m *Machine) FillAnnex(worker int, to rdma.MachineID, number uint64, b []byte) {
	m.Locked(worker, func() {
		if _, err := m.Queue(worker).Write(to, route.AnnexKey(number), 0, b, rdma.Unsignalled); err != nil {
			panic(err)
		}
	})
}

// ForgetAnnexes makes the machine one of a version that knows of none.
func (m *Machine) ForgetAnnexes() { m.Inspect().ForgetAnnexes() }

// WriteText describes the content of a WRITE to memory with key k: a record, with its identifier
// and the transactions that it names as truncated, a message, or something else.
func WriteText(k rdma.Key, b []byte) (text string, id record.ID, isRecord bool) {
	const frames = 16 // of package ring, before and after
	switch route.KindOf(k) {
	case route.KeyLog:
		var r record.Record
		if err := record.Decode(b[frames:len(b)-frames], &r); err != nil {
			return err.Error(), id, false
		}
		text = r.Kind.String()
		if len(r.Writes) > 0 {
			text += fmt.Sprintf(" of %d objects in regions %v", len(r.Writes), r.Regions)
		}
		return text, r.ID, r.Kind != record.Truncate // whose identifier only names the worker
	case route.KeyMessages:
		msg, err := message.Decode(b[frames : len(b)-frames])
		switch {
		case err != nil:
			return err.Error(), id, false
		case msg.Kind == message.LockReply || msg.Kind == message.ValidateReply:
			return fmt.Sprintf("%v, %s", msg.Kind.String(), map[bool]string{true: "refused", false: "granted"}[msg.A != 0]), id, false
		}
		return msg.Kind.String(), id, false
	}
	return fmt.Sprintf("%d bytes of %s", len(b), KeyText(k)), id, false
}

// KeyText describes the memory that a key names.
func KeyText(k rdma.Key) string {
	names := map[route.KeyKind]string{route.KeyRegion: "region", route.KeyLog: "a log", route.KeyMessages: "a message queue", route.KeyCredit: "credits", route.KeyBlocks: "block headers"}
	if route.KindOf(k) == route.KeyRegion {
		return fmt.Sprintf("region %d", uint32(k))
	}
	return names[route.KindOf(k)]
}

// Checked returns how many objects the last validation has checked.
func (t *Tx) Checked() int { return len(t.checks) }
