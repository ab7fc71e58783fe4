package txn_test

import (
	"testing"

	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/rdma"
)

// A commit of one object with three replicas, all on other machines, has three batches: LOCK; COMMIT-BACKUP to both
// backups; COMMIT-PRIMARY. Each is one call of C, however many machines it goes to, with a doorbell for each. What
// somebody waits for, all but LOCK, has a READ that settles it, and only those READs are signalled. COMMIT-PRIMARY alone, without
// the object, travels inside its request. Backups do nothing at all: they find what they have been written later.
//
// A socket has one call for each machine of a batch. 688 bytes are the records; 24 more those of the READs.
func TestCountsOfACommit(t *testing.T) {
	for way, want := range map[testnet.Way]rdma.Counts{
		testnet.TCP:   {Operations: 4, Bytes: 688, Calls: 4},
		testnet.Verbs: {Operations: 4, Bytes: 712, Calls: 3, Doorbells: 4, Requests: 7, Signalled: 3, Inlined: 1},
	} {
		t.Run(string(way), func(t *testing.T) {
			r := open(t, txntest.Config{Machines: 4, Replicas: 3, Workers: 1, Clock: newHandClock(), NewNetwork: over(t, way)}, 4)
			p := r.elsewhere()
			r.settle() // connects, too
			for i := range uint64(5) {
				tx := r.Machine(0).Begin()
				must(t, write(tx, p, i))
				before := r.counts()
				must(t, tx.Commit(ctx))
				for m, c := range r.counts() {
					c = c.Sub(before[m])
					c.Polls, c.Wakes, c.Answers = 0, 0, 0 // as many as the network's time allows
					switch {
					case m == 0 && c != want:
						t.Errorf("the coordinator: %+v, want %+v", c, want)
					case m != 0 && rdma.MachineID(m) != r.Machine(0).ReplicasOf(p)[0] && c != (rdma.Counts{}):
						t.Errorf("backup %d: %+v", m, c)
					}
				}
				r.settle()
			}
			r.quiet()
		})
	}
}

// counts returns what each machine has asked of the network.
func (r *rig) counts() (all []rdma.Counts) {
	for i := range r.Machines() {
		all = append(all, r.Machine(i).NIC().(rdma.Counter).Counts())
	}
	return all
}
