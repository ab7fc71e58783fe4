package transactions

import (
	"context"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/record"
)

// KindConnect is the kind of CONNECT calls.
const KindConnect = kindConnect

// Late returns what Commit of configuration id goes on to do, for a Commit that
// the next Freeze overtakes.
func (t *Recovery) Late(id cluster.ID) func() error {
	r := t.current(id)
	return func() error { return r.activate(context.Background()) }
}

// RequestedVote returns what this machine answers to REQUEST-VOTE.
func (t *Recovery) RequestedVote(in cluster.ID, tx record.ID, id region.ID) Vote {
	asked := []entry{{Evidence: txn.Evidence{ID: tx, Region: id}}}
	return Vote(t.current(in).onRequestVote(asked)[0])
}

// Exchange is what a machine does that has found itself not connected to a member, just
// before it was.
func (t *Recovery) Exchange(id cluster.ID, with rdma.MachineID) error {
	return t.current(id).exchange(context.Background(), with)
}
