package worker

import (
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// A Worker is FaRM's thread: it owns a queue pair to its sibling at every machine, a log and a
// message queue to and from each, and the sequence of the transactions that it coordinates.
// Transactions run on their callers' goroutines and take the worker's lock to append records and to
// process input.
//
// stepLocked, a state machine, processes the input. It runs on the goroutine that holds the lock.
// This may be a goroutine of a transaction that waits for a reply, of a peer that rings the bell
// (with rdma/local), or of the provider.
type Worker struct {
	// m and ID do not change. Lock-free reads load them, so they share no cache line with the
	// fields below, which the ringers of the bell and the holder of the lock write.
	m  *Machine
	ID uint16
	_  prefetch.Pad

	// bell says that there may be input to process; see answerBell.
	bell atomic.Bool

	mu      lockrank.Mutex[lockrank.Worker]
	stats   counters
	q       *patientQueue
	peers   []*peer // indexed by machine; nil for a machine that is no peer
	self    *participant.OwnLog
	window  record.Window
	commits map[uint64]*Commit // commits that wait for LOCK-REPLYs, by sequence number
	calls   map[uint64]*call   // calls that wait for a reply, by tag
	ops     ops
	nextTag uint64
	beats   uint64 // counts calls of Beat
	// releases counts the slots and annexes given back to other machines; released counts the ones
	// that have arrived there.
	releases, released uint64
	toRing             []rdma.MachineID
	// isUnflushed says that operations have been posted since the last Flush.
	isUnflushed bool
	// gathering says that a goroutine will flush those operations after it has given way to
	// others; see GatherLocked. waiting is how many goroutines wait for operations, if the
	// machine gathers posts.
	gathering atomic.Bool
	waiting   atomic.Int32
	buf       []byte // a message being encoded
	// credit is where peers report how far they have freed the logs and queues that this worker
	// writes to.
	credit  *nvram.Memory
	named   []uint64 // the result of takeTruncatedLocked
	timer   clock.Timer
	stopped bool

	// config is the configuration in the identifiers of new transactions. frozen says that no
	// commit may begin, between NEW-CONFIG and NEW-CONFIG-COMMIT.
	config uint32
	frozen bool
	// boundary is the first sequence number that the latest reconfiguration did not catch.
	boundary uint64
	// begun is a list of the commits that have written records and are not decided yet. caught
	// holds the commits whose outcome recovery decides.
	begun  *Commit
	caught map[uint64]*Commit
	_      prefetch.Pad
}

// A peer is a worker's sibling at another machine.
type peer struct {
	id rdma.MachineID
	// life is the number of times that this machine has begun to listen to the peer.
	life uint32
	// connection is the number of times that the peer has begun to listen to this machine. It
	// identifies the log and queue that this machine writes at the peer.
	connection uint32
	memory     *nvram.Memory // holds the log that the peer writes to here (in)
	queue      *nvram.Memory // holds the message queue inMsgs
	log        *ring.Sender
	msgs       *ring.Sender
	in         *participant.Log
	inMsgs     *ring.Receiver
	// outbox keeps messages for which there was no room.
	outbox [][]byte
	// truncated are finished transactions in which the peer took part, and which no record to the
	// peer has named yet. For each, TruncateReserve bytes are still reserved in its log.
	truncated []uint64
	// far are further finished transactions, which were too far above the low bound to be named when
	// the bound was farFrom.
	far     []uint64
	farFrom uint64
	// unrung is how many bytes of log were written since a record or RingPeersLocked last rang the peer.
	unrung  int
	ringing bool
	// refreshing says that the log's head is being read.
	refreshing bool
	// hasLeft says that the peer has left the configuration, and that the ledger of its log
	// (in) is still needed: until a recovery is settled with all regions available. relogged
	// counts the logs of the peer that were replaced because their ledgers were needed.
	hasLeft  bool
	relogged int
	// broken is the reason why all further input from the peer is ignored; nil if input counts.
	broken error
}

const (
	// stepRecordsMax bounds how many records of one peer a step processes.
	stepRecordsMax = 64
	// answersMax bounds the steps in which a goroutine that has released the lock processes input
	// for others before it returns to its own work.
	answersMax = 64
	// ringAfterBytes is how much may be written to a backup's log before the backup is rung. It
	// processes a smaller amount only when something else wakes it.
	ringAfterBytes = 128 << 10
	// truncateDelay is how long a truncation waits for a record to be piggybacked on.
	truncateDelay = 5 * time.Millisecond
)

func newWorker(m *Machine, id uint16) *Worker {
	return &Worker{m: m, ID: id, window: record.NewWindow(m.cfg.Config), commits: make(map[uint64]*Commit), calls: make(map[uint64]*call), caught: make(map[uint64]*Commit), config: m.cfg.Config}
}

// listenLocked prepares the log and message queue that the sibling at another machine writes to.
func (w *Worker) listenLocked(from rdma.MachineID) (g message.WorkerGreeting, err error) {
	cfg := &w.m.cfg
	if from == cfg.ID {
		return g, w.listenToSelfLocked()
	}
	p := &peer{id: from}
	if before := w.peerLocked(from); before != nil {
		err = w.relistenLocked(before, p)
	} else {
		err = w.listenFirstLocked(p)
	}
	if err != nil {
		return g, err
	}
	p.in.Receiver().Feedback(w.q, from, route.CreditKey(w.ID), route.CreditOffset(cfg.ID, route.CreditLog))
	p.inMsgs.Feedback(w.q, from, route.CreditKey(w.ID), route.CreditOffset(cfg.ID, route.CreditMessages))
	for len(w.peers) <= int(from) {
		w.peers = append(w.peers, nil)
	}
	w.peers[from] = p
	g.Life = p.life
	if g.Log, err = p.in.Receiver().State(); err != nil {
		return g, err
	}
	if g.Messages, err = p.inMsgs.State(); err != nil {
		return g, err
	}
	if err := cfg.NIC.Register(route.LogKey(from, w.ID, p.life), p.memory); err != nil {
		return g, err
	}
	return g, cfg.NIC.Register(route.MessagesKey(from, w.ID, p.life), p.queue)
}

// listenToSelfLocked makes the log that the worker writes to its own machine.
func (w *Worker) listenToSelfLocked() error {
	cfg := &w.m.cfg
	log, err := cfg.Log(cfg.ID, int(w.ID))
	if err != nil {
		return err
	}
	if w.self, err = participant.NewOwnLog(log, record.Coordinator{Machine: cfg.ID, Worker: w.ID}, cfg.Clock.Uint64()); err != nil {
		return err
	}
	return cfg.NIC.Register(route.LogKey(cfg.ID, w.ID, 0), log)
}

// listenFirstLocked prepares the log and queue that a peer writes to here. The log comes last: it
// can be mapped only once, so no step that may fail and be repeated can come after it.
func (w *Worker) listenFirstLocked(p *peer) (err error) {
	cfg := &w.m.cfg
	logNonce, queueNonce := cfg.Clock.Uint64(), cfg.Clock.Uint64()
	if p.queue, err = nvram.NewShared(int64(cfg.MessageBytes)); err != nil {
		return err
	}
	if p.inMsgs, err = ring.Create(p.queue, 0, p.queue.Size(), queueNonce); err != nil {
		return err
	}
	if p.memory, err = cfg.Log(p.id, int(w.ID)); err != nil {
		return err
	}
	b := record.NewLedger(p.memory, record.Coordinator{Machine: p.id, Worker: w.ID})
	rx, err := record.OpenEmptyLog(p.memory, logNonce)
	if err != nil {
		return err
	}
	p.in = participant.NewLog(&w.m.Replicas, p.id, w.ID, rx, b)
	return nil
}

// relistenLocked empties the log and queue here that a peer writes to, after the peer has begun
// another life or was cut off. Positions in both continue from where they were, so that a delayed
// credit does no harm. If commits with the peer are in progress, it asks for another configuration:
// only that can end them.
func (w *Worker) relistenLocked(before, p *peer) (err error) {
	if len(before.in.Transactions()) > 0 { // make no new log now: it would already exist at the next attempt
		return ErrHeld
	}
	if p.memory, err = w.logAgainLocked(before); err != nil {
		return err
	}
	w.pollLocked() // process the rest of the old connection
	if w.commitsWithLocked(before) {
		w.fenceLocked(before, outcome.ErrLost)
	}
	w.markLostLocked(before)
	cfg := &w.m.cfg
	cfg.NIC.Deregister(route.LogKey(p.id, w.ID, before.life))
	cfg.NIC.Deregister(route.MessagesKey(p.id, w.ID, before.life))
	before.inMsgs.Reset(cfg.Clock.Uint64())
	p.life, p.queue, p.inMsgs, p.relogged = before.life+1, before.queue, before.inMsgs, before.relogged
	if p.memory == before.memory {
		before.in.Receiver().Reset(cfg.Clock.Uint64())
		p.in = participant.NewLog(&w.m.Replicas, p.id, w.ID, before.in.Receiver(), before.in.Ledger())
	} else if err := w.relogLocked(before, p); err != nil {
		return err
	}
	p.in.Thaw(before.in.Drained())
	w.m.Replicas.Annexes.DropUnbound(before.in, true) // from now on no record can name these annexes
	return nil
}

// logAgainLocked returns the memory for the log that a peer writes to from now on. The same ring
// goes on, unless the ledger of an ended life is still needed.
func (w *Worker) logAgainLocked(before *peer) (*nvram.Memory, error) {
	if before.hasLeft {
		return w.m.cfg.Relog(before.id, int(w.ID), before.relogged+1)
	}
	return before.memory, nil
}

// relogLocked makes another log for a peer, and keeps the ledger of the previous one.
func (w *Worker) relogLocked(before, p *peer) error {
	b := record.NewLedger(p.memory, record.Coordinator{Machine: p.id, Worker: w.ID})
	rx, err := record.CreateLog(p.memory, w.m.cfg.Clock.Uint64())
	if err != nil {
		return err
	}
	w.m.recovery.KeepLedgerLocked(record.Coordinator{Machine: p.id, Worker: w.ID}, before.in.Ledger())
	b.Drain(before.in.Drained(), rx.Next())
	p.in, p.relogged = participant.NewLog(&w.m.Replicas, p.id, w.ID, rx, b), before.relogged+1
	return nil
}

// connectLocked attaches to the log and queue that the sibling at another machine has prepared for
// us.
func (w *Worker) connectLocked(to rdma.MachineID, g message.WorkerGreeting) {
	p, me := w.peers[to], w.m.cfg.ID
	link := ring.Link{Queue: w.q, To: to, Key: route.LogKey(me, w.ID, g.Life), Credit: w.credit, CreditOffset: route.CreditOffset(to, route.CreditLog)}
	p.log = ring.NewSender(g.Log, link)
	link.Key, link.CreditOffset = route.MessagesKey(me, w.ID, g.Life), route.CreditOffset(to, route.CreditMessages)
	p.msgs = ring.NewSender(g.Messages, link)
	p.connection = g.Life
	w.bell.Store(true) // the peer may have written before and wait for replies
}

// ConnectionTo returns the number of the connection to a machine.
func (w *Worker) ConnectionTo(machine rdma.MachineID) uint32 {
	w.Lock()
	defer w.Unlock()
	if p := w.peerLocked(machine); p != nil {
		return p.connection
	}
	return 0
}

// kick makes the worker process its input: on this goroutine, or, if the worker is locked, on the
// goroutine of the lock's holder.
func (w *Worker) kick() {
	w.bell.Store(true)
	w.answerBell()
}

// kickLater makes a new goroutine kick the worker, once the lock's holder has released the lock.
func (w *Worker) kickLater() {
	w.m.Go(w.kick)
}

// Lock takes the worker's lock.
func (w *Worker) Lock() { w.mu.Lock() }

// Unlock ends the batch of what was posted under the lock, and releases the lock. The caller must first
// ring the peers to which it has written something (RingPeersLocked). If this worker's bell was rung
// meanwhile, Unlock processes the input, since the ringer has left that to the holder of the lock.
//
// Unlock itself flushes, so that no caller can forget it. Nobody waits for operations that are held
// back until then, because a worker is not locked during a wait. And this is the latest moment for
// a flush, so that all records, messages and rings to one machine leave together. If another goroutine
// is about to flush, Unlock leaves that to it (GatherLocked).
func (w *Worker) Unlock() {
	hasForgotten := invariant.Enabled && len(w.toRing) > 0
	w.endBatchLocked()
	w.mu.Unlock()
	if hasForgotten {
		invariant.Violated("peers are rung before a worker is unlocked", "not all", "all")
	}
	if w.bell.Load() {
		w.answerBell()
	}
}

// answerBell processes input for as long as the bell is rung and the lock is free.
//
// No ring is lost. A ringer sets the bell and then tries to lock. Either that succeeds, or another
// goroutine has the lock and checks the bell after it has released the lock. Checking the bell
// before the release would not do: a bell rung between the check and the release would go unheard
// until something else happens here. Nor may the ringer wait for the lock: it may hold another
// worker's lock, for which the holder of this one may be waiting in order to ring.
func (w *Worker) answerBell() {
	for range answersMax {
		if !w.bell.Load() || !w.mu.TryLock() {
			return
		}
		w.bell.Store(false) // cleared before processing: input that arrives meanwhile rings again
		w.stepLocked()
		w.RingPeersLocked()
		w.endBatchLocked()
		w.mu.Unlock()
	}
	if w.bell.Load() {
		w.kickLater()
	}
}

// RingPeersLocked rings the peers that ringLocked has marked. A caller of ringLocked calls it once,
// after all of its writes and before it unlocks.
//
// Peers are rung with the lock held. With rdma/local that runs the peer's step on this goroutine.
// The step may ring other peers, and workers that this goroutine has locked already. These only
// note the bell, so that calls nest no deeper than there are machines. If peers were rung without
// the lock, two busy machines would take turns on one goroutine's stack for as long as others give
// them work.
func (w *Worker) RingPeersLocked() {
	for n := len(w.toRing); n > 0; n = len(w.toRing) {
		p := w.peers[w.toRing[n-1]]
		w.toRing = w.toRing[:n-1]
		p.ringing = false
		if p.broken == nil {
			if err := w.q.Ring(p.id); err != nil {
				w.fenceLocked(p, err)
			}
		}
	}
}

// ringLocked marks the peer to be rung by the next RingPeersLocked.
func (w *Worker) ringLocked(p *peer) {
	p.unrung = 0
	if !p.ringing {
		p.ringing = true
		w.toRing = append(w.toRing, p.id)
	}
}

// stepLocked processes the worker's input.
func (w *Worker) stepLocked() {
	if w.stopped {
		return // the memory to process may be unmapped
	}
	w.pollLocked()
	for _, p := range w.peers {
		if p == nil || p.broken != nil {
			continue
		}
		err := w.stepLogLocked(p)
		if err == nil {
			err = w.stepMessagesLocked(p)
		}
		if err == nil {
			err = w.flushOutboxLocked(p)
		}
		if err != nil {
			w.fenceLocked(p, err)
		}
	}
}

// stepLogLocked carries out records that a peer has written to its log here, and sends the replies: stepRecordsMax at
// most, or one slice of a large one.
func (w *Worker) stepLogLocked(p *peer) error {
	for range stepRecordsMax {
		reply, more, err := p.in.Step()
		if err != nil || !more {
			return err
		}
		if reply.Kind != 0 {
			if err := w.sendLocked(p, &reply); err != nil {
				return err
			}
		}
		if p.in.IsAtWork() { // after one slice, let others have the worker
			w.goOnLater()
			return nil
		}
	}
	w.bell.Store(true) // there may be more records: step again
	return nil
}

// goOnLater makes the worker step again after its lock has been free for a moment.
func (w *Worker) goOnLater() {
	if w.m.Meets(clock.GiveWay) {
		w.kickLater()
		return
	}
	w.bell.Store(true)
}

// stepMessagesLocked handles messages of a peer, stepRecordsMax at most.
func (w *Worker) stepMessagesLocked(p *peer) error {
	for range stepRecordsMax {
		rec, ok, err := p.inMsgs.Poll()
		if err != nil || !ok {
			return err
		}
		msg, err := message.Decode(rec.Payload)
		if err != nil {
			return err
		}
		if err := w.receiveLocked(p, msg); err != nil {
			return err
		}
		reported := p.inMsgs.Reported()
		p.inMsgs.Free(rec.End)
		if p.inMsgs.Reported() != reported {
			w.ringLocked(p) // the peer's outbox may be waiting for room
		}
	}
	w.bell.Store(true) // there may be more messages: step again
	return nil
}

// receiveLocked handles one message. Its body is valid until receiveLocked returns.
func (w *Worker) receiveLocked(p *peer, msg message.Message) error {
	switch msg.Kind {
	case message.LockReply:
		if c := w.commits[msg.Tag]; c != nil {
			c.lockReplyLocked(p.id, msg)
		}
	case message.Validate:
		reply, err := w.m.Replicas.Validate(msg)
		if err != nil {
			return err
		}
		return w.sendLocked(p, &reply)
	case message.ValidateReply, message.Reply:
		if c := w.calls[msg.Tag]; c != nil && c.to == p.id {
			w.endCallLocked(msg.Tag, c)
			c.replyLocked(msg)
		}
	case message.Request:
		w.m.serve(w, p, msg)
	}
	return nil
}

// fenceLocked ignores all further input from a peer, and asks for another configuration.
func (w *Worker) fenceLocked(p *peer, err error) {
	if p.broken != nil {
		return
	}
	p.broken = err
	if f := w.m.cfg.Events.Fenced; f != nil && !w.m.closed.Load() {
		f(p.id, err)
	}
	w.failWaitsLocked(p.id, err)
}

// failWaitsLocked fails the calls to a machine and the waits for its LOCK-REPLYs.
func (w *Worker) failWaitsLocked(machine rdma.MachineID, err error) {
	for _, tag := range slices.Sorted(maps.Keys(w.calls)) {
		if c := w.calls[tag]; c.to == machine {
			w.endCallLocked(tag, c)
			c.failLocked(err)
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(w.commits)) {
		w.commits[seq].LostLocked(machine, err)
	}
}

// sendLocked appends a message to the peer's queue, or to the outbox while the queue
// is full.
func (w *Worker) sendLocked(p *peer, msg *message.Message) error {
	w.buf = append(msg.AppendHeader(w.buf[:0]), msg.Body...)
	w.stats.messages.Add(1)
	if len(p.outbox) > 0 {
		p.outbox = append(p.outbox, append([]byte(nil), w.buf...))
		return nil
	}
	sent, err := w.trySendLocked(p, w.buf, !msg.Kind.IsOfStep())
	if err == nil && !sent && !sabotage.Outbox.Skipped() {
		p.outbox = append(p.outbox, append([]byte(nil), w.buf...))
	}
	return err
}

// trySendLocked appends an encoded message to the peer's queue. It returns false if the queue is
// full, or the peer not connected yet. rings says that it rings the peer with the message; otherwise
// the next RingPeersLocked does.
func (w *Worker) trySendLocked(p *peer, b []byte, rings bool) (bool, error) {
	if p.msgs == nil {
		return false, nil // the peer is not connected yet
	}
	var err error
	if rings {
		_, _, err = p.msgs.AppendRing(rdma.Unsignalled, b)
	} else {
		_, _, err = p.msgs.Append(rdma.Unsignalled, b)
	}
	if !rings || err != nil { // a full queue waits for the peer
		w.ringLocked(p)
	}
	if errors.Is(err, ring.ErrFull) {
		return false, nil
	}
	return err == nil, err
}

func (w *Worker) flushOutboxLocked(p *peer) error {
	for len(p.outbox) > 0 {
		sent, err := w.trySendLocked(p, p.outbox[0], false)
		if err != nil || !sent {
			return err
		}
		p.outbox[0] = nil
		p.outbox = p.outbox[1:]
	}
	p.outbox = nil
	return nil
}
