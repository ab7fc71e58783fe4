package txn

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/set"
	"github.com/farmsql/farmsql/txn/wait"
	"github.com/farmsql/farmsql/txn/worker"
)

// validateRounds bounds the rounds of questions in one attempt; after these the attempt starts
// over.
const validateRounds = 4

// A check compares the version of an object that the transaction depends on with its present
// version.
type check struct {
	ptr     region.Ptr
	version region.Version
	// question is the index of the question whose source the object is, or one of the constants
	// below.
	question int
	machine  rdma.MachineID
	verdict  message.Verdict
	header   [8]byte // where a READ puts the header of an object at another machine
}

const (
	checkRead = -1 // a strict read: any change is a conflict
	checkLate = -2 // a read of a preparation: after a change, prepare again
)

// Validate checks that everything the transaction has read is still valid. Until Validate or Commit
// has succeeded, no result of the transaction may be shown to anyone: it may have seen objects that
// never coexisted.
//
// It takes time in proportion to all that was read. To validate after each of many steps, use
// ValidateRecent if nothing is shown of a step except that it has succeeded.
func (t *Tx) Validate() error { return t.validateAfter(readSize{}) }

// ValidateRecent checks that what the transaction has read since the last validation is valid,
// all of it at one moment. It checks everything, like Validate, while that is little
// (validateAllMax), and again each time that the amount read has doubled. So validating after
// each of n steps takes time in proportion to n, not to its square, and a transaction that
// cannot commit any more is noticed early.
//
// After it, only results that depend on these recent reads alone may be shown.
func (t *Tx) ValidateRecent() error {
	if t.state == nil {
		return t.usable()
	}
	if n := t.readSize().total(); n <= validateAllMax || n >= 2*t.validatedAll {
		return t.Validate()
	}
	return t.validateAfter(t.validated)
}

// validateAllMax is the number of objects and questions up to which ValidateRecent checks
// everything. Checking so many takes a few microseconds if they are local, and a round trip
// otherwise.
const validateAllMax = 128

// A readSize stands for a moment of a transaction: it has the lengths, at that moment, of the lists that
// keep what the transaction has read. Elements beyond these lengths were read later. The zero readSize
// is the beginning.
type readSize struct{ reads, looked, writes, questions int }

func (n readSize) total() int { return n.reads + n.looked + n.writes + n.questions }

// readSize returns how much the transaction has read until now.
func (s *state) readSize() readSize {
	return readSize{reads: len(s.reads.Entries), looked: len(s.looked.Entries), writes: len(s.writes.Entries), questions: len(s.questions)}
}

// validateAfter checks that everything that the transaction has read after start is still valid. If it
// is not, or stays locked for commitPatience, validateAfter dooms the transaction.
func (t *Tx) validateAfter(start readSize) error {
	if err := t.usable(); err != nil {
		return err
	}
	t.forgetAhead() // what was read ahead is older than this validation: to use it later would risk a conflict
	b := wait.Backoff{Lease: &t.m.Lease, Patience: commitPatience}
	var since time.Time // the time since which a reconfiguration has blocked the validation
	for {
		out, err := t.validate(start)
		if errors.Is(err, worker.ErrMoved) {
			if since, err = t.m.AwaitMove(t.ctx, err, since); err == nil {
				continue
			}
		}
		if err == nil && out == committed {
			err = t.m.ConfirmWithin(t.ctx)
		}
		if err == nil && out == committed {
			t.noteValidated(start)
		}
		if err != nil || out == committed {
			return t.doom(err)
		}
		if err := t.m.Gone(); err != nil {
			return t.doom(err)
		}
		since = time.Time{}
		if !b.Again() {
			return t.doom(cmp.Or(t.m.ConfirmWithin(t.ctx), abort(ReasonBusy, 0)))
		}
	}
}

// noteValidated notes that everything that was read after start has been valid just now.
func (s *state) noteValidated(start readSize) {
	s.validated = s.readSize()
	if start == (readSize{}) { // this validation has checked everything
		s.validatedAll = s.validated.total()
	}
}

// validateReadOnly commits a transaction that writes nothing: it is serializable
// at the moment of its last read, if all of its reads are still valid then.
func (s *state) validateReadOnly() (result, error) {
	// A single read of one object is valid at its own moment, and needs no check. With an intent this
	// does not hold: the intent has read the object again, later, and has found nothing to write.
	if len(s.intents) == 0 && len(s.reads.Entries)+len(s.looked.Entries)+len(s.questions) <= 1 && s.sources() <= 1 {
		return committed, nil
	}
	return s.validate(readSize{})
}

// sources counts the objects that validation checks: the read set and the sources of all questions.
func (s *state) sources() int {
	n := len(s.reads.Entries) + len(s.looked.Entries)
	for _, q := range s.questions {
		n += len(q.Sources())
	}
	return n
}

// validate checks, at one moment, everything that was read after start. After a question had to be asked
// again, it checks all of that in another round: only a round without such a question shows that
// everything was valid at the round's beginning.
func (s *state) validate(start readSize) (result, error) {
	if sabotage.Validation.Skipped() || (sabotage.ValidationLast.Skipped() && s.locked) {
		return committed, nil
	}
	for range validateRounds {
		before := s.m.Routes.Load()
		s.listChecks(start)
		if err := s.runChecks(); err != nil {
			if !s.locked && !errors.Is(err, worker.ErrMoved) {
				err = s.m.AwaitReplacement(s.ctx, before, err)
			}
			return again, s.m.OrGone(err)
		}
		out, hasAsked, err := s.judgeChecks()
		if err != nil || out != committed || !hasAsked || sabotage.Rounds.Skipped() {
			return out, err
		}
	}
	return again, nil
}

// listChecks lists the objects that must be unchanged: strict reads, unless the transaction also writes
// the object; strict writes, until they are locked; and the sources of questions; of all these only what
// was read after start. It also lists all late reads.
func (s *state) listChecks(start readSize) {
	s.checks = s.checks[:0]
	for i := start.reads; i < len(s.reads.Entries); i++ {
		if e := &s.reads.Entries[i]; !s.rewrites(e.Ptr) {
			s.addCheck(e.Ptr, e.Version, checkRead)
		}
	}
	s.listLooked(start.looked)
	if !s.locked { // a lock needs no check
		for i := start.writes; i < len(s.writes.Entries); i++ {
			if e := &s.writes.Entries[i]; e.Op != record.OpAlloc && !e.Dead {
				s.addCheck(e.Ptr, e.Version, checkRead)
			}
		}
	}
	for i := range s.late.set.Entries {
		if e := &s.late.set.Entries[i]; !e.Written() && !e.Dead && !sabotage.LateChecks.Skipped() {
			s.addCheck(e.Ptr, e.Version, checkLate)
		}
	}
	for i := start.questions; i < len(s.questions); i++ {
		for _, src := range s.questions[i].Sources() {
			s.addCheck(src.Ptr, src.Version, i)
		}
	}
}

// listLooked is listChecks for the objects of ReadInto, from number start on. Of these it checks objects of this machine
// itself, and lists only those that are not as they were: a scan reads many, and to list one takes longer than to check
// it.
func (s *state) listLooked(start int) {
	routes := s.m.Routes.Load()
	for i := start; i < len(s.looked.Entries); i++ {
		e := &s.looked.Entries[i]
		rt := routes.Of(e.Ptr.Addr.Region())
		isSame := rt != nil && rt.PrimaryHere && rt.State != route.Blocked && message.Judge(rt.Local.Header(e.Ptr.Addr.Offset()), e.Version) == message.Same
		if !isSame && !s.rewrites(e.Ptr) {
			s.addCheck(e.Ptr, e.Version, checkRead)
		}
	}
}

// rewrites reports whether the transaction also writes the object p, which it has read: then
// the lock replaces the check. It returns false if that object has been freed meanwhile and the
// transaction makes another object at the same address: then the check fails, as it must.
func (s *state) rewrites(p region.Ptr) bool {
	i := s.writes.Find(p.Addr)
	return i >= 0 && s.writes.Entries[i].Ptr == p
}

// addCheck adds a check of the object p at version v. question is the index of the question that it
// belongs to, or checkRead or checkLate.
func (s *state) addCheck(p region.Ptr, v region.Version, question int) {
	s.checks = append(s.checks, check{ptr: p, version: v, question: question})
}

// runChecks sets the verdict of each check.
func (s *state) runChecks() error {
	remote := 0
	routes := s.m.Routes.Load()
	for i := range s.checks {
		c := &s.checks[i]
		rt := routes.Of(c.ptr.Addr.Region())
		switch {
		case rt == nil:
			return cmp.Or(s.m.Locate(c.ptr.Addr), worker.ErrMoved)
		case rt.State == route.Blocked && !sabotage.BlockedValidation.Skipped():
			return worker.BlockedError(rt.Region)
		}
		c.machine = rt.Primary
		switch own := s.ownLock(c.ptr); {
		case own != nil:
			c.verdict = message.Same
			if own.Version != c.version {
				c.verdict = message.Changed
			}
			c.machine = s.m.ID()
		case rt.PrimaryHere:
			c.verdict = message.Judge(rt.Local.Header(c.ptr.Addr.Offset()), c.version)
		default:
			remote++
		}
	}
	if remote == 0 {
		return nil
	}
	if err := s.runRemoteChecks(); err != nil {
		return err
	}
	if s.m.Routes.Load() != routes && !sabotage.ChecksRoute.Skipped() {
		return worker.ErrMoved // a machine of the routes may have left since
	}
	return nil
}

// ownLock returns the write that has locked p for this transaction, or nil.
func (s *state) ownLock(p region.Ptr) *set.Entry {
	if e := s.lockedAt(p.Addr); e != nil && e.Ptr == p {
		return e
	}
	return nil
}

// lockedAt returns the write by which this transaction has locked the slot at an address, or nil: a
// write of the object there, or of an object that the transaction makes there.
func (s *state) lockedAt(a region.Addr) *set.Entry {
	if !s.locked {
		return nil
	}
	if i := s.late.set.Find(a); i >= 0 && s.late.set.Entries[i].Written() {
		return &s.late.set.Entries[i]
	}
	if i := s.writes.Find(a); i >= 0 && !s.writes.Entries[i].Dead {
		return &s.writes.Entries[i]
	}
	return nil
}

// runRemoteChecks reads the versions at other primaries, or asks a primary of more than
// validateReads objects with one message. It reads from all primaries at once, so that validation
// takes one round trip for all READs, and asks meanwhile.
func (s *state) runRemoteChecks() error {
	counts := make(map[rdma.MachineID]int)
	for i := range s.checks {
		if machine := s.checks[i].machine; machine != s.m.ID() {
			counts[machine]++
		}
	}
	isRead := func(machine rdma.MachineID) bool { n := counts[machine]; return n > 0 && n <= s.m.validateReads }
	hasReads, err := s.postVersionReads(isRead)
	for _, machine := range slices.Sorted(maps.Keys(counts)) {
		if err == nil && !isRead(machine) {
			err = s.askVersions(machine)
		}
	}
	if hasReads { // the READs write to the checks: wait for them even after an error
		err = cmp.Or(err, s.w.Await(&s.commit.Wait))
	}
	if err != nil {
		return err
	}
	for i := range s.checks {
		if c := &s.checks[i]; isRead(c.machine) {
			c.verdict = message.Judge(region.Header(binary.LittleEndian.Uint64(c.header[:])), c.version)
		}
	}
	return nil
}

// postVersionReads posts READs of the headers of all objects of the chosen machines. If hasReads, the
// caller must Await s.commit.Wait, even after an error.
func (s *state) postVersionReads(isRead func(rdma.MachineID) bool) (hasReads bool, err error) {
	w := s.w
	w.Lock()
	for i := range s.checks {
		c := &s.checks[i]
		if !isRead(c.machine) || err != nil {
			continue
		}
		hasReads = true
		addr := c.ptr.Addr
		err = w.PostReadLocked(c.machine, route.RegionKey(addr.Region()), uint64(addr.Offset()), c.header[:], &s.commit.Wait)
	}
	if !hasReads {
		w.Unlock()
		return false, nil
	}
	w.CountRoundTrip()
	w.GatherLocked()
	w.Unlock()
	return true, err
}

// askVersions asks the primary to check its objects (VALIDATE).
func (s *state) askVersions(machine rdma.MachineID) error {
	var asked []*check
	var body []byte
	for i := range s.checks {
		if c := &s.checks[i]; c.machine == machine {
			asked = append(asked, c)
			body = binary.LittleEndian.AppendUint64(body, uint64(c.ptr.Addr))
			body = binary.LittleEndian.AppendUint64(body, uint64(c.version))
		}
	}
	chunk := s.m.MessageBodyMax() / participant.ValidateBytes
	for len(asked) > 0 {
		n := min(chunk, len(asked))
		s.w.CountRoundTrip()
		reply, err := s.w.Call(s.ctx, machine, message.Message{Kind: message.Validate, C: uint32(n), Body: body[:n*participant.ValidateBytes]}, nil)
		if err != nil {
			return err
		}
		if len(reply.Body) != n {
			return fmt.Errorf("%w: VALIDATE-REPLY about %d objects instead of %d", message.ErrBad, len(reply.Body), n)
		}
		for i := range n {
			asked[i].verdict = min(message.Verdict(reply.Body[i]), message.Changed)
		}
		asked, body = asked[n:], body[n*participant.ValidateBytes:]
	}
	return nil
}

// judgeChecks looks at the verdicts on all checks, up to the first that fails. A changed strict read is
// a conflict. If a strict read is locked, or a late read is not the same, another attempt is needed
// (again). If a source of a question is not the same, judgeChecks asks the question again, and hasAsked
// is true; another answer than before is a conflict.
func (s *state) judgeChecks() (out result, hasAsked bool, err error) {
	asked := -1 // the question asked last
	for i := range s.checks {
		c := &s.checks[i]
		wasAsked := c.question >= 0 && c.question == asked // because of another of its sources
		if c.verdict == message.Same || wasAsked {
			continue
		}
		switch {
		case c.question == checkRead && c.verdict == message.Changed:
			return again, false, abort(ReasonValidate, c.ptr.Addr)
		case c.question < 0: // locked by another transaction, or read by a preparation
			return again, false, nil
		}
		asked = c.question
		if sabotage.Answers.Skipped() {
			continue
		}
		same, err := s.questions[asked].Ask(&s.fresh)
		if errors.Is(err, outcome.ErrConflict) || errors.Is(err, ErrStale) {
			return again, false, nil
		}
		if err != nil {
			return again, false, err
		}
		if !same {
			return again, false, abort(ReasonAnswer, c.ptr.Addr)
		}
		hasAsked = true
	}
	return committed, hasAsked, nil
}

// heldPatience is ReadPatience for a transaction that holds locks itself, so that two transactions
// that wait for each other soon give up.
const heldPatience = 0
