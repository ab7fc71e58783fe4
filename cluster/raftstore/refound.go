package raftstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Refounding makes one founder, whose process does not run, the only one, because a majority is lost for
// good. It holds the folder until Close.
//
// The last entries of the log may not have been committed; they count, because the machines
// that are lost may have committed them. The others may have committed more, which is lost with
// them: the caller must know that.
type Refounding struct {
	folder   string
	founding Founding
	state    state
	votes    *raftpb.ConfState
	founders Founders
	last     uint64 // the entry with the highest index
	term     uint64
	unlock   func()
}

// formerLogName begins the names under which Refound keeps the former logs, for people.
const formerLogName = "log.before."

// indexesPerRefounding is how far Refound raises the index and the term of the log: above all
// that the lost majority may have reached, should it come back.
const indexesPerRefounding = 1 << 32

var errNoFounder = errors.New("cluster: this machine does not keep the configuration, or has not got it yet")

// BeginRefounding reads the part of the store in a folder. known are the founders that the
// machine has learned last by other ways than the log; they may be later than those of the log.
// It fails with ErrInUse while a process has the folder open, with ErrRemoved if the others
// have gone on without the machine, and with ErrSplit if another machine was refounded, and
// goes on.
func BeginRefounding(folder string, known Founders) (*Refounding, error) {
	unlock, err := lockFolder(folder)
	if err != nil {
		return nil, err
	}
	r := &Refounding{folder: folder, unlock: unlock}
	err = r.read()
	if err == nil {
		err = r.learn(known)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return r, nil
}

// Close gives the folder back.
func (r *Refounding) Close() { r.unlock() }

// Configuration returns the newest configuration that the log has.
func (r *Refounding) Configuration() (*cluster.Configuration, error) {
	return cluster.Decode("the configuration store in "+r.folder, r.state.configuration)
}

// Founders returns the founders that the log knows.
func (r *Refounding) Founders() Founders { return r.founders.clone() }

// read takes what the log says.
func (r *Refounding) read() error {
	founding, log, err := openFolder(r.folder)
	if err != nil {
		return err
	}
	defer log.close()
	r.founding, r.founders = founding, founding.founders()
	snapshot, _ := log.memory.Snapshot()      // never fails
	_, r.votes, _ = log.memory.InitialState() // never fails
	if len(snapshot.GetData()) > 0 {
		if r.state, err = decodeState(snapshot.GetData()); err != nil {
			return err
		}
	}
	if r.state.founders != nil {
		r.founders = r.state.founders.clone()
	}
	hard, _, _ := log.memory.InitialState()
	first, _ := log.memory.FirstIndex()
	r.last, _ = log.memory.LastIndex()
	r.term = hard.GetTerm()
	if first <= r.last {
		entries, err := log.memory.Entries(first, r.last+1, ^uint64(0))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := r.apply(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// learn takes known if these founders are later than those of the log. It fails unless the machine is one of
// them, and has a configuration.
func (r *Refounding) learn(known Founders) error {
	if err := CheckLine(r.founders.Line, known.Line); err != nil {
		return err
	}
	if known.Version > r.founders.Version {
		r.founders = known.clone()
	}
	switch self := r.founding.Machine; {
	case slices.Contains(r.founders.Removed, self):
		return fmt.Errorf("%w (%s)", ErrRemoved, r.folder)
	case len(r.state.configuration) == 0 || !r.founders.Has(self):
		return fmt.Errorf("%w (%s)", errNoFounder, r.folder)
	}
	return nil
}

// apply carries out an entry, as far as it concerns the configuration, or who may no longer
// vote.
func (r *Refounding) apply(e *raftpb.Entry) error {
	switch {
	case e.GetType() != raftpb.EntryNormal:
		return r.applyVotes(e)
	case len(e.GetData()) == 0:
	case isChange(e.GetData()):
		c, err := decodeChange(e.GetData())
		if err != nil {
			return err
		}
		_ = r.founders.apply(c) // a change that is refused changes nothing
	default:
		c, err := decodeSwap(e.GetData())
		if err != nil {
			return err
		}
		_ = r.state.apply(c)
	}
	return nil
}

// applyVotes notes who votes after a change of the votes, as replica.applyVotes does: changes that do not follow from
// the founders are left out.
func (r *Refounding) applyVotes(e *raftpb.Entry) error {
	c := new(raftpb.ConfChangeV2)
	if err := proto.Unmarshal(e.GetData(), c); err != nil {
		return fmt.Errorf("%w: a change of votes: %w", ErrDamaged, err)
	}
	if c.LeaveJoint() {
		r.votes.VotersOutgoing = nil
		r.founders.leave()
		return nil
	}
	step, isDue := due(r.votes, r.founders)
	if !isDue || !proto.Equal(step, c) {
		return nil
	}
	isVote := c.GetChanges()[0].GetType() == raftpb.ConfChangeAddNode
	if isVote && len(c.GetChanges()) == 2 { // until LeaveJoint a majority of the former voters must agree, too
		r.votes.VotersOutgoing = slices.Clone(r.votes.GetVoters())
	}
	for _, voteChange := range c.GetChanges() {
		r.applyVote(voteChange.GetType(), voteChange.GetNodeId())
	}
	if isVote {
		r.founders.vote()
	}
	return nil
}

// applyVote changes one machine's part in the votes.
func (r *Refounding) applyVote(kind raftpb.ConfChangeType, id uint64) {
	isIt := func(other uint64) bool { return other == id }
	r.votes.Voters, r.votes.Learners = slices.DeleteFunc(r.votes.Voters, isIt), slices.DeleteFunc(r.votes.Learners, isIt)
	switch kind {
	case raftpb.ConfChangeAddNode:
		r.votes.Voters = append(r.votes.Voters, id)
	case raftpb.ConfChangeAddLearnerNode:
		r.votes.Learners = append(r.votes.Learners, id)
	}
}

// An Absence is the result of asking for a founder that is to be given up.
type Absence struct {
	Machine rdma.MachineID
	Address string
	// Reason says why the founder is taken for absent.
	Reason error
}

// Absent asks for the other founders at their addresses, all at once, for up to patience each.
// It returns the results, and an error if one of them is not lost, which the error names. A
// founder is not lost if somebody answers at its address, unless it is another machine of the
// cluster. A founder that cannot be asked from here is not lost either, unless the operator
// says that it is lost. Absent needs Dial, TLS and Authorize of cfg.
func (r *Refounding) Absent(ctx context.Context, cfg Config, patience time.Duration, lost []rdma.MachineID) ([]Absence, error) {
	var all []Absence
	for _, m := range slices.Sorted(maps.Keys(r.founders.Machines)) {
		if m != r.founding.Machine {
			all = append(all, Absence{Machine: m, Address: r.founders.Machines[m]})
		}
	}
	present := make([]error, len(all))
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for i := range all {
		running.Go(func() {
			limited, done := context.WithTimeout(asking, patience)
			defer done()
			reason, err := r.askFor(limited, cfg, all[i].Machine)
			if asking.Err() != nil {
				return // this request was cut short
			}
			if all[i].Reason, present[i] = reason, err; err != nil {
				cancel() // the others do not matter any more
			}
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err // not all founders were asked to the end
	}
	if i := slices.IndexFunc(present, func(err error) bool { return err != nil }); i >= 0 {
		return nil, fmt.Errorf("machine %d at %s %w", all[i].Machine, all[i].Address, present[i])
	}
	for _, a := range all {
		if !isAbsence(a.Reason) && !slices.Contains(lost, a.Machine) {
			return nil, fmt.Errorf("machine %d at %s %w: %w", a.Machine, a.Address, ErrNotAsked, a.Reason)
		}
	}
	return all, nil
}

// ErrNotAsked means that a founder is neither there nor known to be lost.
var ErrNotAsked = errors.New("cannot be asked from here, and may be there")

var (
	errAnswers = errors.New("answers")
	errHangs   = errors.New("takes connections, but says nothing: its process may hang, or be stopped")
	errClosed  = errors.New("the connection was closed at once")
	errAnother = errors.New("another machine has its address now")
)

// isAbsence reports whether a connection has failed as it fails if nobody is there. Other
// failures, such as a name that is not found, or no network, say more of this machine than of
// the other.
func isAbsence(reason error) bool {
	if name := new(net.DNSError); errors.As(reason, &name) {
		return false // even if the error says that the time is up
	}
	known := []error{errClosed, errAnother, context.DeadlineExceeded, unix.ETIMEDOUT, unix.ECONNREFUSED, unix.EHOSTUNREACH}
	return slices.ContainsFunc(known, func(one error) bool { return errors.Is(reason, one) })
}

// askFor asks for a founder at its address. absent says why the founder is taken for absent;
// present is an error if it is there, or may be. A certificate that has run out, or a clock
// that is wrong, does not make a machine lost.
func (r *Refounding) askFor(ctx context.Context, cfg Config, m rdma.MachineID) (absent, present error) {
	socket, err := cfg.Dial(ctx, r.founders.Machines[m])
	if err != nil {
		return err, nil
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	stream, err := dialTLS(ctx, cfg.TLS, socket, r.founders.Machines[m])
	if isClosed(err) {
		return errClosed, nil // a relay accepted in place of a machine that is gone
	}
	if err != nil && ctx.Err() != nil {
		return nil, errHangs
	}
	if err != nil {
		return nil, fmt.Errorf("%w, but not as one that can be trusted: %w", errAnswers, err)
	}
	if secured, ok := stream.(securedConn); ok && cfg.Authorize != nil && cfg.Authorize(m, secured.ConnectionState()) != nil {
		return errAnother, nil
	}
	g := r.founding.greeting(m)
	g.kind, g.from = ofClient, 0
	if _, err = stream.Write(g.encode()); err == nil {
		_, err = readReply(stream)
	}
	switch {
	case errors.Is(err, refusals[otherMachine]):
		return errAnother, nil
	case cfg.TLS == nil && isClosed(err):
		return errClosed, nil
	}
	return nil, errAnswers // somebody answers, whatever the answer says
}

// isClosed reports whether an error says that the other side has closed the connection.
func isClosed(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) }

// Refound makes the machine the only founder, with next as the configuration. The revision of
// next must be above that of Configuration, and its line one number longer than that of
// Founders. From then on all other machines that the log knows are refused, like machines that
// were replaced. They may be clients, and, as further machines, successors. The former log
// stays under the name log.before.N with the highest N.
func (r *Refounding) Refound(next *cluster.Configuration) error {
	if next.Revision <= r.state.revision {
		return fmt.Errorf("cluster: the configuration has revision %d, and is to replace revision %d", next.Revision, r.state.revision)
	}
	if len(next.Line) != len(r.founders.Line)+1 || next.Line.IsApart(r.founders.Line) {
		return fmt.Errorf("cluster: the configuration has the line %x, and is to go on from %x by one", next.Line, r.founders.Line)
	}
	f := r.refounded(next.Line)
	s := state{revision: next.Revision, configuration: next.Encode(), founders: &f}
	term, index := r.term+indexesPerRefounding, r.last+indexesPerRefounding
	snapshot := &raftpb.Snapshot{Data: s.encode(), Metadata: &raftpb.SnapshotMetadata{
		Index: &index, Term: &term, ConfState: &raftpb.ConfState{Voters: []uint64{raftID(r.founding.Machine)}},
	}}
	b, err := encodeLog(record(&raftpb.HardState{Term: &term, Commit: &index}, snapshot, nil)) // without a vote: see hasBegun
	if err != nil {
		return err
	}
	path := filepath.Join(r.folder, logName)
	if err := keepFormer(r.folder); err != nil {
		return fmt.Errorf("cluster: keep the log of the configuration store: %w", err)
	}
	if err := nvram.ReplaceFile(path, ".new", b); err != nil {
		return fmt.Errorf("cluster: write the log of the configuration store: %w", err)
	}
	return nil
}

// refounded returns the founders of a line after Refound.
func (r *Refounding) refounded(line cluster.Line) Founders {
	f, self := r.founders.clone(), r.founding.Machine
	if f.Next != nil { // the successor may have a part of the log by now
		f.Machines[f.Next.Machine] = f.Next.Address
	}
	left := maps.Clone(f.Left) // the machines that an earlier Refounding left behind
	if left == nil {
		left = make(map[rdma.MachineID]string)
	}
	for m, address := range f.Machines {
		if m != self {
			f.Removed, left[m] = insert(f.Removed, m), address
		}
	}
	return Founders{
		Version:  refoundedVersion(f.Version, line[len(line)-1]),
		Machines: map[rdma.MachineID]string{self: f.Machines[self]}, Removed: f.Removed, Left: left,
		Wanted: max(f.Wanted, len(r.founding.Machines)), Line: slices.Clone(line),
	}
}

// keepFormer copies the log of a folder. Copies of earlier ones stay.
func keepFormer(folder string) error {
	b, err := os.ReadFile(filepath.Join(folder, logName))
	if err != nil {
		return err
	}
	n, err := latestFormer(folder)
	if err != nil {
		return err
	}
	return nvram.ReplaceFile(formerLog(folder, n+1), ".new", b)
}

// latestFormer returns the highest number of a former log that a folder has; 0 if it has none. Somebody may have removed
// earlier ones.
func latestFormer(folder string) (highest int, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		number, isFormer := strings.CutPrefix(e.Name(), formerLogName)
		if n, err := strconv.Atoi(number); isFormer && err == nil { // not a spare copy of a former log
			highest = max(highest, n)
		}
	}
	return highest, err
}

// findFormer returns the latest former log. It removes one that equals the present log: Refound
// was cut short after it had made the copy, or UndoRefounding before it removed the log that it
// had put back.
func findFormer(folder string) (path string, err error) {
	current, err := os.ReadFile(filepath.Join(folder, logName))
	for err == nil {
		var n int
		if n, err = latestFormer(folder); err != nil {
			break
		}
		path = formerLog(folder, n)
		if b, _ := os.ReadFile(path); !bytes.Equal(b, current) { // the copy differs, or there is none
			break
		}
		err = os.Remove(path)
	}
	return path, err
}

// isFormer reports whether a log is the one that the Refounding with a snapshot has replaced.
func isFormer(path string, snapshot *raftpb.Snapshot) (bool, error) {
	l, err := openLog(path)
	if err != nil {
		return false, err
	}
	hard, _, _ := l.memory.InitialState() // never fails
	last, _ := l.memory.LastIndex()       // never fails
	isReplaced := last+indexesPerRefounding == snapshot.GetMetadata().GetIndex() && hard.GetTerm()+indexesPerRefounding == snapshot.GetMetadata().GetTerm()
	return isReplaced, l.close()
}

func formerLog(folder string, n int) string {
	return filepath.Join(folder, fmt.Sprint(formerLogName, n))
}

var (
	errNotRefounded = errors.New("cluster: this machine was not refounded, or that is undone already")
	errNotFormer    = errors.New("cluster: what this machine had before it was refounded is not there any more: that cannot be undone")
	errHasBegun     = errors.New("cluster: this machine has kept the configuration alone since it was refounded: that cannot be undone any more")
)

// UndoRefounding takes back the last Refound in a folder, because the others are back. It fails
// once the machine has begun: with the former log, the machine would take part in another
// history than the one that it has begun.
func UndoRefounding(folder string) error {
	unlock, err := lockFolder(folder)
	if err != nil {
		return err
	}
	defer unlock()
	founding, log, err := openFolder(folder)
	if err != nil {
		return err
	}
	snapshot, _ := log.memory.Snapshot() // never fails
	s, hasBegun := state{}, log.hasBegun()
	if len(snapshot.GetData()) > 0 {
		s, err = decodeState(snapshot.GetData())
	}
	if err = errors.Join(err, log.close()); err != nil {
		return err
	}
	switch {
	case s.founders == nil || len(s.founders.Line) == 0:
		return errNotRefounded
	case hasBegun || len(s.founders.Machines) != 1 || !s.founders.Has(founding.Machine): // hasBegun does not tell of a log that others have sent
		return errHasBegun
	}
	former, err := findFormer(folder)
	if err != nil {
		return fmt.Errorf("cluster: find the log of before: %w", err)
	}
	isReplaced, err := isFormer(former, snapshot)
	if err != nil || !isReplaced {
		return errors.Join(fmt.Errorf("%w (%s)", errNotFormer, former), err)
	}
	b, err := os.ReadFile(former)
	if err == nil {
		err = nvram.ReplaceFile(filepath.Join(folder, logName), ".new", b)
	}
	if err != nil {
		return fmt.Errorf("cluster: put back the log of before: %w", err)
	}
	return os.Remove(former) // the log that came before this one is the next to be put back
}
