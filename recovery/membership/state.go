package membership

import (
	"slices"

	"github.com/farmsql/farmsql/internal/invariant"
)

// A phase is how far a machine has come in its current configuration, as a member of it.
//
//	starting -> applying -> applied -> committed -> active
//	               ^-----------+-----------+----------+     the next NEW-CONFIG
//
//	applying   NEW-CONFIG has arrived. From here on no transaction of this machine commits,
//	           the machine ignores machines outside of the configuration, and replicas change
//	           their roles. Only one configuration is applied at a time.
//	applied    All of that is done, and NEW-CONFIG-ACK is sent. It must not be sent earlier:
//	           the CM takes it as a promise that nothing of the last configuration proceeds
//	           here.
//	committed  NEW-CONFIG-COMMIT has arrived: all members have applied the configuration, and
//	           the leases of evicted machines are over. Only now may logs be drained and
//	           regions become active: before, a machine might still act by the last
//	           configuration.
//	active     ALL-REGIONS-ACTIVE has arrived: all primaries have locked the objects that
//	           recovering transactions write. Replicas are filled from here on; before, filling
//	           would slow down the recovery that transactions wait for (SOSP'15 section 5.4).
//
// A member that is about to stop goes through the same phases: Leave ends only its part in the
// stages below, so it is not a phase.
//
// Any phase can end with evicted or closed. Only closed follows evicted, and nothing follows
// closed: another life of the machine is another Machine.
type phase uint8

const (
	starting  phase = iota // no configuration yet: beginning an instance, restarting together, or asking to join
	applying               // SOSP'15 section 5.2 step 6
	applied                // the end of step 6
	committed              // step 7
	active                 // all regions are active (section 5.3)
	evicted                // left out, ended by an error of its own, or by Restart
	closed
)

var phaseNames = [...]string{"starting", "applying", "applied", "committed", "active", "evicted", "closed"}

func (p phase) String() string { return phaseNames[p] }

// phasesBefore lists, for each phase, the phases that it may follow.
var phasesBefore = [...][]phase{
	starting:  {},
	applying:  {starting, applied, committed, active},
	applied:   {applying},
	committed: {applied},
	active:    {committed},
	evicted:   {starting, applying, applied, committed, active},
	closed:    {starting, applying, applied, committed, active, evicted, closed}, // Close may be called repeatedly
}

// isMember reports whether the machine is a member of its current configuration.
func (p phase) isMember() bool { return applying <= p && p <= active }

// isRecovering reports whether the machine is a member and not all regions are active yet.
func (p phase) isRecovering() bool { return applying <= p && p < active }

// isOver reports whether this life of the machine has ended.
func (p phase) isOver() bool { return p == evicted || p == closed }

// enterLocked moves the machine to another phase.
func (m *Machine) enterLocked(next phase) {
	if invariant.Enabled && !slices.Contains(phasesBefore[next], m.mu.phase) {
		invariant.Violated("the phase of a member that follows "+m.mu.phase.String(), next, phasesBefore[next])
	}
	m.mu.phase = next
}

// A stage is how far a machine has come in moving the instance on to another
// configuration.
//
//	steady     -> suspecting
//	suspecting -> probing -> remapping -> updating -> sending -> expiring -> committing
//
//	suspecting  There is a reason for another configuration, mostly a suspect. It is
//	            another machine's turn to make it, or this machine waits for its own turn.
//	probing     A majority must answer before a configuration is stored: otherwise a machine
//	            that is cut off itself would evict all the others. Machines that do not answer
//	            are left out, too, so that simultaneous failures cost one configuration.
//	remapping   The CM makes the next configuration, with new places for the replicas that are
//	            gone. This comes before updating because the whole configuration is stored.
//	updating    The store accepts the configuration only if no other one has been stored in
//	            between: so only one of several machines that try becomes the CM. No member may
//	            be told before, since the attempt may fail.
//	sending     Members apply the configuration and acknowledge. A member may lack room for the
//	            replicas that it gets: then another configuration is stored, which gives it less.
//	expiring    All members have applied it. A machine that was left out may not know about it, and
//	            act by a lease that was granted before: the CM waits until such leases run out.
//	committing  NEW-CONFIG-COMMIT. Recovery may begin.
//
// A change may end at any stage: because a machine is suspected, no majority answers, or the store
// does not answer. The next change starts from the stored configuration. A machine that starts may
// begin with updating or sending: it has made its configuration in another way, or in an earlier
// life.
type stage uint8

const (
	steady     stage = iota // nothing is being changed
	suspecting              // SOSP'15 section 5.2 step 1
	probing                 // step 2
	remapping               // step 4
	updating                // step 3
	sending                 // steps 5 and 6
	expiring                // step 7: old leases run out
	committing              // step 7: NEW-CONFIG-COMMIT is sent
)

var stageNames = [...]string{"steady", "suspecting", "probing", "remapping", "updating", "sending", "expiring", "committing"}

func (s stage) String() string { return stageNames[s] }

// stagesBefore lists, for each stage, the stages that it may follow. A change may end at
// any stage, so steady and suspecting may follow every other.
var stagesBefore = [...][]stage{
	steady:     {suspecting, probing, remapping, updating, sending, expiring, committing},
	suspecting: {steady, probing, remapping, updating, sending, expiring, committing},
	probing:    {suspecting},
	remapping:  {probing},
	updating:   {steady, suspecting, remapping, sending},
	sending:    {steady, suspecting, updating},
	expiring:   {sending},
	committing: {expiring},
}

// proceedLocked moves the change of the configuration to another stage. From probing on, only the
// holder of m.change may call it.
func (m *Machine) proceedLocked(next stage) {
	if invariant.Enabled && !slices.Contains(stagesBefore[next], m.mu.stage) {
		invariant.Violated("the stage of a reconfiguration that follows "+m.mu.stage.String(), next, stagesBefore[next])
	}
	m.mu.stage = next
}

func (m *Machine) proceed(next stage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proceedLocked(next)
}

// restLocked sets the stage between two changes: suspecting while lead runs, because there is a
// reason for the next one, and otherwise steady.
func (m *Machine) restLocked() {
	next := steady
	if m.mu.leads {
		next = suspecting
	}
	if m.mu.stage != next {
		m.proceedLocked(next)
	}
}

// rest ends a change of the configuration, whatever its result.
func (m *Machine) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restLocked()
}
