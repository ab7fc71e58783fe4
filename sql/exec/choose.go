package exec

import (
	"math"
	"math/bits"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// countedMax is the number of keys at which the counting of an access's ranges stops.
const countedMax = 1000

// choose returns the chosen access of a scan. After 1, 2, 4, 8 and so on executions it chooses
// again, for the values of the execution, because tables grow.
func (r *run) choose(ctx *gms.Context, n *plan.Scan) *plan.Access {
	if _, ok := r.textNumberOf(n); ok {
		return byPrimaryKey(n)
	}
	if len(n.Access) <= 1 {
		return accessOf(n, 0)
	}
	return &n.Access[r.again(n.Number, func() int { return r.cheapest(ctx, n) })]
}

// accessOf returns an access of a scan by its number. For a scan without accesses it returns an
// access to the whole table.
func accessOf(n *plan.Scan, number int) *plan.Access {
	if len(n.Access) == 0 {
		return &plan.Access{Branches: []plan.Branch{{Index: n.Table.PrimaryKey}}, Covers: n.Where == nil}
	}
	return &n.Access[number]
}

// again returns the choice for a source: the choice of this execution if it chooses anew, otherwise the latest one.
func (r *run) again(source int, choose func() int) int {
	if !r.isChosen {
		runs := r.prepared.runs.Add(1)
		r.isChosen, r.chooses = true, bits.OnesCount64(runs) == 1
	}
	if r.chooses && !r.hasChosen[source] { // only once, although a subquery is opened for each outer row
		r.hasChosen[source] = true
		r.prepared.chosen[source].Store(int64(choose()))
	}
	return int(r.prepared.chosen[source].Load())
}

// cheapest returns the access that reads the fewest rows for the values of this execution.
func (r *run) cheapest(ctx *gms.Context, n *plan.Scan) int {
	total := r.rowsOf(ctx, n)
	counts := make([]float64, len(n.Access))
	least := total // about how many rows meet the condition: every access reads all of them
	for i := range n.Access {
		counts[i] = r.count(ctx, n, &n.Access[i], total)
		least = min(least, counts[i])
	}
	best, cost := 0, math.Inf(1)
	for i, c := range counts {
		if n.Access[i].Ordered && n.Order != nil {
			// This assumes that the rows that pass are spread evenly over the rows that are read.
			c = r.untilWanted(n.Wants, c, least)
		}
		if c < cost {
			best, cost = i, c
		}
	}
	return best
}

// untilWanted returns how many of c rows are read until the wanted number has passed, if pass of
// the c rows pass in all.
func (r *run) untilWanted(wants *plan.Limit, c, pass float64) float64 {
	return min(c, float64(r.wanted(wants))*c/max(pass, 1))
}

// chooseOrder is choose for the order in which the tables of a join are read.
func (r *run) chooseOrder(ctx *gms.Context, n *plan.Join) *plan.JoinOrder {
	if len(n.Orders) == 1 {
		return &n.Orders[0]
	}
	return &n.Orders[r.again(n.Number, func() int { return r.cheapestOrder(ctx, n) })]
}

// rowsOfTable returns about how many rows a table of a join has.
func (r *run) rowsOfTable(ctx *gms.Context, t *plan.JoinTable) float64 {
	if t.Source != nil {
		return r.estimate(ctx, t.Source)
	}
	return r.rowsOf(ctx, t.Scan)
}

// estimate estimates the number of rows that a node returns.
func (r *run) estimate(ctx *gms.Context, n plan.Node) float64 {
	switch n := n.(type) {
	case *plan.Scan:
		total := r.rowsOf(ctx, n)
		return min(total, r.count(ctx, n, r.choose(ctx, n), total))
	case *plan.Join:
		o := r.chooseOrder(ctx, n)
		_, passed := r.outerRows(ctx, n, o)
		rows, _ := r.stepsOf(ctx, n, o, passed)
		return passed * rows
	case *plan.Limit:
		return min(float64(r.wanted(n)), r.estimate(ctx, n.Child))
	case *plan.Group:
		if len(n.By) == 0 {
			return 1
		}
		return inSet * r.estimate(ctx, n.Child)
	case *plan.Filter:
		return inSet * r.estimate(ctx, n.Child)
	case *plan.Union:
		return r.estimate(ctx, n.First) + r.estimate(ctx, n.Second)
	case *plan.Project:
		return r.estimate(ctx, n.Child)
	case *plan.Derived:
		return r.estimate(ctx, n.Child)
	case *plan.Sort:
		return r.estimate(ctx, n.Child)
	case *plan.Distinct:
		return r.estimate(ctx, n.Child)
	case *plan.Window:
		return r.estimate(ctx, n.Child)
	}
	return 1
}

// rowsOf estimates the number of rows of a table.
func (r *run) rowsOf(ctx *gms.Context, n *plan.Scan) float64 {
	rows, _, err := (&store.Table{Store: r.s.Store, Info: n.Table}).RowCount(ctx)
	if err != nil {
		return math.MaxInt32
	}
	return float64(rows)
}

// count counts the keys that an access reads. Where the count stops at countedMax it guesses half of the total rows of the
// table. An access that reads the whole table counts as total rows or, through another index than the primary key, as
// throughIndex times as many.
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
		if index != n.Table.PrimaryKey && areAll(ranges) {
			return throughIndex * max(total, 1)
		}
		k, ok := r.s.Store.CountRanges(index, ranges, countedMax)
		if !ok {
			return max(total/2, countedMax)
		}
		keys += float64(k)
	}
	return keys
}

// throughIndex is how much more a row costs that is read through an index, compared with a row of a
// scan of the whole table.
const throughIndex = 2

// areAll reports whether ranges of an index leave out only NULL, as those of LIKE '%a' do: they bound no more than a key's
// first byte, which says whether the value is NULL.
func areAll(ranges []store.KeyRange) bool {
	return len(ranges) == 1 && len(ranges[0].Low) <= 1 && len(ranges[0].High) <= 1
}
