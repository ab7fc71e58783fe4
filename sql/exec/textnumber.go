package exec

import (
	"cmp"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file compares a column of texts with a whole number, as in name = 123. Both are doubles then, so no index by the texts
// gives the rows, and each text that does not spell a number is a warning. The warnings are those of go-mysql-server if all
// rows of one table are read in the order of its primary key, and nothing else may warn.

// A textNumber is the comparison of a column of texts with a number.
type textNumber struct {
	plan.Compare
	number float64
	run    *run
}

// textNumberOf returns the comparison that a scan's condition is; false if it is another condition, or warnings would
// differ from go-mysql-server's.
func (r *run) textNumberOf(n *plan.Scan) (*textNumber, bool) {
	where, ok := n.Where.(plan.Compare)
	if !ok || !r.mayWarn || n.End || !row.IsCharacter(n.Table.Codec(where.Column).Kind) {
		return nil, false
	}
	v, ok := where.Value.In(r.values)
	if !ok || !v.IsNumber || onlyScan(r.query.Rows) != n {
		return nil, false
	}
	return &textNumber{where, float64(v.Number), r}, true
}

// onlyScan returns the scan from which alone a node's rows come; nil if there is none.
func onlyScan(n plan.Node) *plan.Scan {
	switch n := n.(type) {
	case *plan.Scan:
		return n
	case *plan.Project:
		return onlyScan(n.Child)
	case *plan.Sort:
		return onlyScan(n.Child)
	case *plan.Limit:
		return onlyScan(n.Child)
	case *plan.Group:
		return onlyScan(n.Child)
	}
	return nil
}

// byPrimaryKey returns the access to all rows of a scan's table in the order of its primary key.
func byPrimaryKey(n *plan.Scan) *plan.Access {
	for i := range n.Access {
		a := &n.Access[i]
		if len(a.Branches) == 1 && len(a.Branches[0].Parts) == 0 && a.Branches[0].Index == n.Table.PrimaryKey && !a.Reverse {
			return a
		}
	}
	return &plan.Access{Branches: []plan.Branch{{Index: n.Table.PrimaryKey}}}
}

// truth returns whether the comparison is true for a text.
func (t *textNumber) truth(ctx *gms.Context, text string) truth {
	number, warning := compat.NumberOfText(text, t.run.s.WantsWarning)
	if warning != nil {
		t.run.warned++
		ctx.Session.Warn(warning)
	}
	return truthOf(holds(t.Op, cmp.Compare(number, t.number)))
}

// scan returns the rows of the table for which the comparison is true.
func (t *textNumber) scan(ctx *gms.Context, n *plan.Scan, access *plan.Access) (gms.RowIter, error) {
	at, codec := n.Place(t.Column), n.Table.Codec(t.Column)
	scan, err := t.run.branch(ctx, n, &access.Branches[0], false)
	if err != nil {
		return nil, err
	}
	scan.Passes = passing(func(ctx *gms.Context, r gms.Row) (truth, error) {
		text, ok := r[at].(string)
		if !ok {
			return isUnknown, unless(r[at] == nil)
		}
		return t.truth(ctx, text), nil
	})
	if codec.IsDirect() {
		slot := n.Table.Rows.Columns[t.Column].Slot
		scan.Stored = func(v *row.View) store.Verdict {
			b, known := value(v, slot)
			switch {
			case !known:
				return store.Maybe
			case b == nil || t.truth(ctx, string(b)) != isTrue:
				return store.No
			}
			return store.Yes
		}
	}
	return t.run.rows(n, scan), nil
}
