package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/plan"
)

// This file lets a step that has looked up rows of a table for many rows of the earlier tables read the whole table, and
// keep its rows in a hash table. A lookup of a row takes several times as long as a row of a scan, and nobody knows before
// how many lookups there will be.

const (
	// spareLooksMin is the least number of lookups after which a table is read as a whole.
	spareLooksMin = 64
	// spareRows is how many rows of a table may be read as a whole for each row that was looked up.
	spareRows = 2
	// spareRowsMax bounds the rows of a table that is read as a whole.
	spareRowsMax = 1 << 18
)

// spareOf returns what keeps the rows of a step's table, and after how many lookups it is worth while; nil if it never is, or if
// the rows of lookups come in an order, or with addresses, that kept rows do not have.
func (r *run) spareOf(ctx *gms.Context, n *plan.Join, s *plan.JoinStep) (*kept, int) {
	t := &n.Tables[s.Table]
	rows := r.rowsOf(ctx, t.Scan)
	if s.Reverse || rows > spareRowsMax || r.changes(t.Table) {
		return nil, 0
	}
	var keys []keptKey
	for _, p := range s.Lookup.Parts {
		if p.Outer != nil {
			keys = append(keys, keptKey{t.Scan.Place(p.Column), n.Place(*p.Outer), t.Codec(p.Column)})
		}
	}
	if len(keys) == 0 {
		return nil, 0
	}
	return r.newKept(t, keys), max(spareLooksMin, int(rows/spareRows))
}

// keep reads the step's whole table, from which the step's rows come from then on. Without memory for it lookups go on.
func (s *step) keep(ctx *gms.Context) error {
	k := s.spare
	s.spare = nil
	switch err := k.read(ctx); {
	case myerr.StatementMemory.Is(err):
		k.give()
		return nil
	case err != nil:
		return err
	}
	s.kept = k
	return nil
}
