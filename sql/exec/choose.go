package exec

import (
	"math"
	"math/bits"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// countedMax is the number of keys at which counting the ranges of an access stops.
const countedMax = 1000

// choose returns the access of a scan, as chosen last. It chooses again, for the values of this
// execution, after 1, 2, 4, 8 and so on executions: tables grow.
func (r *run) choose(ctx *gms.Context, n *plan.Scan) *plan.Access {
	switch len(n.Access) {
	case 0:
		return &plan.Access{Branches: []plan.Branch{{Index: n.Table.PrimaryKey}}}
	case 1:
		return &n.Access[0]
	}
	if r.chosen != nil {
		return r.chosen
	}
	if runs := r.prepared.runs.Add(1); bits.OnesCount64(runs) == 1 {
		r.prepared.chosen.Store(int64(r.cheapest(ctx, n)))
	}
	r.chosen = &n.Access[r.prepared.chosen.Load()]
	return r.chosen
}

// cheapest returns the access that reads the fewest rows for the values of this execution.
func (r *run) cheapest(ctx *gms.Context, n *plan.Scan) int {
	total := r.rowsOf(ctx, n)
	counts := make([]float64, len(n.Access))
	least := total
	for i := range n.Access {
		counts[i] = r.count(ctx, n, &n.Access[i], total)
		least = min(least, counts[i])
	}
	best, cost := 0, math.Inf(1)
	for i, c := range counts {
		if n.Access[i].Ordered && n.Order != nil {
			// Rows that pass are taken to be spread evenly over those that are read.
			c = min(c, float64(r.wanted(n.Wants))*c/max(least, 1))
		}
		if c < cost {
			best, cost = i, c
		}
	}
	return best
}

// rowsOf returns about how many rows a table has.
func (r *run) rowsOf(ctx *gms.Context, n *plan.Scan) float64 {
	rows, _, err := (&store.Table{Store: r.s.Store, Info: n.Table}).RowCount(ctx)
	if err != nil {
		return math.MaxInt32
	}
	return float64(rows)
}

// count counts the keys that an access reads. Where they are many it guesses: half of the table, or
// all if nothing bounds them.
func (r *run) count(ctx *gms.Context, n *plan.Scan, a *plan.Access, total float64) float64 {
	keys := 0.0
	for i := range a.Branches {
		b := &a.Branches[i]
		if len(b.Parts) == 0 && len(b.Alternatives) == 0 {
			return max(total, 1)
		}
		index, ranges, ok := b.Ranges(ctx, n.Table, r.values)
		if !ok {
			return max(total, 1)
		}
		if index.Access == catalog.AccessHash {
			keys += float64(len(ranges))
			continue
		}
		k, ok := r.s.Store.CountRanges(index, ranges, countedMax)
		if !ok {
			return max(total/2, countedMax)
		}
		keys += float64(k)
	}
	return keys
}
