package sql

import (
	"math"
	"testing"

	"github.com/farmsql/farmsql/sql/store"
)

// The transaction of a client that leaves in the middle of it has no effect, and ends: what
// others free meanwhile could not be used again as long as it is there.
func TestClientLeavesInTransaction(t *testing.T) {
	for _, begin := range []string{"BEGIN", "SET autocommit = 0"} {
		c := openBounded(t, boundedMemory(64<<20, math.MaxInt64))
		before := c.exec("SELECT COUNT(*) FROM t")[0][0]
		c.exec(begin)
		c.exec("DELETE FROM t WHERE id < 10")
		tr := c.s.GetTransaction().(*store.Transaction)
		if tr.Ended {
			t.Fatalf("%s: no transaction is open", begin)
		}
		c.s.SessionEnd()
		if !tr.Ended || c.s.GetTransaction() != nil {
			t.Errorf("%s: the transaction is open", begin)
		}
		if after := c.in.client("d").exec("SELECT COUNT(*) FROM t")[0][0]; after != before {
			t.Errorf("%s: %v rows, were %v", begin, after, before)
		}
	}
}
