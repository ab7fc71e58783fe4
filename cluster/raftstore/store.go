package raftstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// A Store is one machine's part of a configuration store, and its access to all of it.
type Store struct {
	cfg      Config
	founding Founding
	peers    atomic.Pointer[peers]
	life     uint32                   // a random number, for requestID
	counter  atomic.Uint64            // counts requests
	hasBegun atomic.Bool              // see standing
	heirs    atomic.Pointer[Founders] // the founders that go on without this machine, once it has been told
	leader   atomic.Uint64            // the leader's number in the library; raft.None if there is none, or it is not known

	requests  chan *request
	received  chan arrival
	stirring  chan struct{} // something is to be done: see calm.go
	suspected chan rdma.MachineID
	stand     chan uint64 // the leader against which to stand for election now, or raft.None
	ending    chan error  // why the loop must end

	ctx     context.Context    // the context of everything that runs
	cancel  context.CancelFunc // ends everything
	ended   chan struct{}      // closed when the loop has ended; failure does not change then
	failure error
	running sync.WaitGroup
	unlock  func()

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		accepted map[rdma.MachineID]connection // the newest connection that each machine has opened
	}
}

var _ cluster.Store = (*Store)(nil)

// A request is a Load or a CompareAndSwap under way.
type request struct {
	id       requestID
	swap     *swap     // the swap to carry out; nil for a Load
	change   *change   // the change of the founders to carry out; nil for a Load
	deadline time.Time // after this time nobody waits for the request
	done     chan answer

	// Only the loop uses these fields:
	asked time.Time     // when the request was last begun
	again time.Duration // how long after asked it is begun again
	index uint64        // for a Load: the entry up to which the state must be applied; 0 if that is not known
}

// isLoad reports whether a request changes nothing.
func (q *request) isLoad() bool { return q.swap == nil && q.change == nil }

// An answer ends a request.
type answer struct {
	configuration []byte // the result of a Load; empty if there is none
	err           error
}

// errUncertain means that a snapshot has replaced the entries that would tell whether a swap was
// carried out.
var errUncertain = &unanswered{"cluster: this machine's configuration store had fallen behind, and cannot tell whether the configuration was changed: load it again"}

// Open opens the store in cfg.Folder, and takes part in it until Close. It does not wait for other
// machines. It fails with ErrNotCreated, ErrInUse, ErrDamaged, ErrNewer, ErrRemoved or ErrSplit, or with an
// error of the file system, and leaves cfg.Listener open then.
func Open(cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	unlock, err := lockFolder(cfg.Folder)
	if err != nil {
		return nil, err
	}
	founding, log, err := openFolder(cfg.Folder)
	if err != nil {
		unlock()
		return nil, err
	}
	s, err := open(cfg, founding, log)
	if err != nil {
		_ = log.close()
		unlock()
		return nil, err
	}
	s.unlock = unlock
	return s, nil
}

// openFolder opens the files of a locked folder.
func openFolder(folder string) (Founding, *logFile, error) {
	founding, err := readFounding(folder)
	if err != nil {
		return founding, nil, err
	}
	log, err := openLog(filepath.Join(folder, logName))
	return founding, log, err
}

// open makes a Store and starts it.
func open(cfg Config, founding Founding, log *logFile) (*Store, error) {
	s := &Store{
		cfg: cfg, founding: founding, life: rand.Uint32(),
		requests: make(chan *request), received: make(chan arrival), stirring: make(chan struct{}, 1), suspected: make(chan rdma.MachineID, suspicionsMax), stand: make(chan uint64),
		ending: make(chan error, 1), ended: make(chan struct{}),
	}
	s.mu.accepted = make(map[rdma.MachineID]connection)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.peers.Store(new(peers))
	r, err := newReplica(s, log)
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.start(r)
	return s, nil
}

// start starts everything that runs until the store ends: the listener, the watch over machines that were left
// behind, and the loop.
func (s *Store) start(r *replica) {
	s.regroup(r.votes, r.founders())
	s.running.Go(func() { s.accept(s.ctx) })
	s.running.Go(func() { s.watchLeft(s.ctx) })
	s.running.Go(func() {
		s.failure = r.run(s.ctx)
		if errors.Is(s.failure, ErrRemoved) || errors.Is(s.failure, ErrSplit) {
			s.failure = errors.Join(s.failure, s.founding.saveEnd(s.cfg.Folder, s.failure)) // saved before anybody acts on the failure
		}
		if f := s.heirs.Load(); f != nil && errors.Is(s.failure, ErrRemoved) {
			s.peers.Store(&peers{founders: f.clone()}) // the machine asks these from now on
		}
		close(s.ended)
		// A machine that has failed must not look alive.
		s.cancel()
		_ = s.cfg.Listener.Close()
	})
}

// Close implements cluster.Store. It closes Config.Listener. Requests under way fail with ErrClosed.
func (s *Store) Close() error {
	s.cancel()
	_ = s.cfg.Listener.Close()
	s.running.Wait()
	s.unlock()
	return nil
}

// Err returns why the store has stopped, or nil while it runs.
func (s *Store) Err() error {
	select {
	case <-s.ended:
		return s.failure
	default:
		return nil
	}
}

// Load implements cluster.Store: see the package's comment.
func (s *Store) Load() (*cluster.Configuration, error) {
	b, err := s.ask(&request{id: s.newID()}, s.cfg.Patience)
	if len(b) == 0 || err != nil {
		return nil, err
	}
	return cluster.Decode("the configuration store in "+s.cfg.Folder, b)
}

// CompareAndSwap implements cluster.Store: see the package's comment.
func (s *Store) CompareAndSwap(old uint64, next *cluster.Configuration) error {
	c, err := newSwap(s.newID(), old, next)
	if err != nil {
		return err
	}
	_, err = s.ask(&request{id: c.id, swap: c}, s.cfg.Patience)
	return err
}

// newID returns an identifier that no request had.
func (s *Store) newID() (id requestID) {
	binary.LittleEndian.PutUint16(id[0:], uint16(s.founding.Machine))
	binary.LittleEndian.PutUint32(id[4:], s.life)
	binary.LittleEndian.PutUint64(id[8:], s.counter.Add(1))
	return id
}

// ask carries out a request: a swap, a change, or a Load. It fails after patience, or with the reason why the
// store has stopped.
func (s *Store) ask(r *request, patience time.Duration) ([]byte, error) {
	begin := time.Now()
	r.deadline, r.done = begin.Add(patience), make(chan answer, 1)
	for _, l := range s.peers.Load().links {
		l.send(nil) // ask who is there, should there be no answer
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	requests := s.requests
	for {
		select {
		case requests <- r:
			requests = nil // the loop has it: only the answer is awaited
		case a := <-r.done:
			return a.configuration, a.err
		case <-timer.C:
			return nil, s.unanswered(begin, patience)
		case <-s.ended:
			select {
			case a := <-r.done:
				return a.configuration, a.err
			default:
				return nil, s.failure
			}
		}
	}
}

// unanswered returns the error of a request that has had no answer since begin.
func (s *Store) unanswered(begin time.Time, patience time.Duration) error {
	p := s.peers.Load()
	voters := p.voters()
	all, answering := len(voters), 0
	var missing []string
	for _, id := range voters {
		l := p.links[id]
		if l == nil {
			answering++ // this machine counts as answering
			continue
		}
		ok, reason := l.answeredSince(begin)
		if ok {
			answering++
		} else {
			missing = append(missing, fmt.Sprintf("machine %d at %s: %v", machineOf(id), l.address, reason))
		}
	}
	verb := "answer"
	if answering == 1 {
		verb = "answers"
	}
	text := fmt.Sprintf("cluster: %d of %d machines of the configuration store %s", answering, all, verb)
	if need := all/2 + 1; answering < need {
		text += fmt.Sprintf(", and it needs %d: %s", need, strings.Join(missing, "; "))
	} else if s.leader.Load() == raft.None {
		text += fmt.Sprintf(", and have not agreed on a leader within %v", patience)
	} else {
		text += fmt.Sprintf(", but not with a result within %v: is a disk slow?", patience)
	}
	return &unanswered{text}
}
