package exec

import (
	"io"
	"math"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// scan returns the rows of a table that meet the scan's condition.
func (r *run) scan(ctx *gms.Context, n *plan.Scan) (gms.RowIter, error) {
	if t, ok := r.textNumberOf(n); ok {
		return t.scan(ctx, n, byPrimaryKey(n))
	}
	return r.scanBy(ctx, n, r.choose(ctx, n))
}

// scanBy is scan for one of the scan's accesses.
func (r *run) scanBy(ctx *gms.Context, n *plan.Scan, access *plan.Access) (gms.RowIter, error) {
	scan, err := r.covered(ctx, n, access)
	if err != nil {
		return nil, err
	}
	isUnwanted := n.Wants != nil && r.wanted(n.Wants) == 0
	if scan != nil && !isUnwanted {
		return ended(n, r.rows(n, scan)), nil
	}
	c := compiler{n.Place, n.Table.Codec, r.values}
	where, ok := c.compile(whereOf(n))
	if !ok {
		return nil, ErrPlan
	}
	if isUnwanted {
		return gms.RowsToRowIter(), nil
	}
	var branches []gms.RowIter
	before := never // the test of the branches before: they return a row that several branches have
	for i := range access.Branches {
		b := &access.Branches[i]
		passes := where
		if len(access.Branches) > 1 {
			own, ok := c.compile(b.Condition)
			if !ok {
				return nil, ErrPlan
			}
			passes = both(where, butNot(own, before))
			before = either(before, own)
		}
		scan, err := r.branch(ctx, n, b, access.Reverse)
		if err != nil {
			return nil, err
		}
		scan.Passes = passing(passes)
		if len(access.Branches) == 1 {
			stored := storedCompiler{c, n.Table.Rows}
			scan.Stored = stored.verdict(whereOf(n))
		}
		branches = append(branches, r.rows(n, scan))
	}
	var rows gms.RowIter = &chain{branches: branches}
	if len(branches) == 1 {
		rows = branches[0]
	}
	return ended(n, rows), nil
}

// ended returns the rows of a scan: one at most, if it ends there.
func ended(n *plan.Scan, rows gms.RowIter) gms.RowIter {
	if n.End {
		return &limit{rows, 0, 1}
	}
	return rows
}

// covered returns the scan of an access whose ranges have exactly the rows that meet the condition, so that no row
// is tested; nil if rows must be tested.
func (r *run) covered(ctx *gms.Context, n *plan.Scan, access *plan.Access) (*store.Scan, error) {
	if !access.Covers || len(access.Branches) != 1 {
		return nil, nil
	}
	scan, err := r.branch(ctx, n, &access.Branches[0], access.Reverse)
	if err != nil || slices.ContainsFunc(scan.Ranges, func(k store.KeyRange) bool { return k.IsWide }) {
		return nil, err
	}
	if r.skip.scan == n && !r.s.ForUpdate {
		scan.Skip, r.skip.rows = r.skip.rows, 0
		scan.First = max(0, scan.First-int(min(scan.Skip, math.MaxInt32)))
	}
	return scan, nil
}

// whereOf returns a scan's condition.
func whereOf(n *plan.Scan) plan.Condition {
	if n.Where == nil {
		return plan.And{}
	}
	return n.Where
}

// never is the test that no row passes.
func never(*gms.Context, gms.Row) (truth, error) { return isFalse, nil }

// both returns the test that is true if both tests are.
func both(a, b test) test {
	return func(ctx *gms.Context, r gms.Row) (truth, error) {
		v, err := a(ctx, r)
		if err != nil || v != isTrue {
			return isFalse, err
		}
		return b(ctx, r)
	}
}

// butNot returns the test that is true if one test is and the other is not.
func butNot(a, not test) test {
	return both(a, func(ctx *gms.Context, r gms.Row) (truth, error) {
		v, err := not(ctx, r)
		return truthOf(v != isTrue), err
	})
}

// either returns the test that is true if one of the tests is.
func either(a, b test) test {
	return func(ctx *gms.Context, r gms.Row) (truth, error) {
		v, err := a(ctx, r)
		if err != nil || v == isTrue {
			return v, err
		}
		w, err := b(ctx, r)
		return max(v, w), err
	}
}

// branch returns the scan of the rows of a branch.
func (r *run) branch(ctx *gms.Context, n *plan.Scan, b *plan.Branch, reverse bool) (*store.Scan, error) {
	index, ranges, ok := b.Ranges(ctx, n.Table, r.values)
	if !ok {
		return nil, ErrPlan
	}
	if reverse {
		slices.Reverse(ranges)
	}
	wanted := r.wanted(n.Wants)
	if n.End {
		wanted = 1
	}
	return &store.Scan{
		Index: index, Ranges: ranges, Reverse: reverse, Changes: r.changes(n.Table), Whole: n.Whole,
		First: int(min(wanted, math.MaxInt32)) % math.MaxInt32, // 0, which asks for no number, from MaxInt32 on
	}, nil
}

// rows returns the rows of a scan of a table.
func (r *run) rows(n *plan.Scan, scan *store.Scan) storeRows {
	t := &store.Table{Store: r.s.Store, Info: n.Table, Columns: n.Columns, Sparse: n.Sparse}
	return t.Rows(r.s, r.tr, scan)
}

// storeRows are the rows of a table.
type storeRows interface {
	gms.RowIter
	Count(*gms.Context) (int64, error)
	NextStored(*gms.Context) (*row.View, error)
	StoredValue(*row.View, int) ([]byte, error)
}

// branchesOf returns the rows of each branch of a scan.
func branchesOf(rows gms.RowIter) []gms.RowIter {
	if c, ok := rows.(*chain); ok {
		return c.branches
	}
	return []gms.RowIter{rows}
}

// passing returns a function that reports whether a row passes a test.
func passing(t test) func(*gms.Context, gms.Row) (bool, error) {
	return func(ctx *gms.Context, row gms.Row) (bool, error) {
		v, err := t(ctx, row)
		return v == isTrue, err
	}
}

// A chain returns the rows of its branches one after the other.
type chain struct{ branches []gms.RowIter }

// Next implements gms.RowIter.
func (c *chain) Next(ctx *gms.Context) (gms.Row, error) {
	for len(c.branches) > 0 {
		row, err := c.branches[0].Next(ctx)
		if err != io.EOF {
			return row, err
		}
		c.branches = c.branches[1:]
	}
	return nil, io.EOF
}

// Close implements gms.RowIter. The rows of a table need not be closed.
func (c *chain) Close(*gms.Context) error { return nil }

// HasAddresses implements addressed.
func (c *chain) HasAddresses() bool { return c.branches[0].(addressed).HasAddresses() }

// Address implements addressed.
func (c *chain) Address() region.Ptr { return c.branches[0].(addressed).Address() }
