package recovery

import (
	"context"

	"github.com/farmsql/farmsql/cluster"
)

// KindConnect is the kind of CONNECT calls.
const KindConnect = kindConnect

// Late returns what Commit of configuration id goes on to do, for a Commit that
// the next Freeze overtakes.
func (t *Transactions) Late(id cluster.ID) func() error {
	r := t.current(id)
	return func() error { return r.activate(context.Background()) }
}
