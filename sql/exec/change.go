package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// changedMax bounds the rows that a statement changes: they are all read before the first is changed.
// go-mysql-server changes more of them, for which it keeps their addresses only.
const changedMax = 10000

// change runs an UPDATE or DELETE.
func (r *run) change(ctx *gms.Context) (types.OkResult, error) {
	r.changes = true
	rows, err := r.all(ctx)
	if err != nil {
		return types.OkResult{}, err
	}
	if len(rows) > changedMax {
		return types.OkResult{}, ErrPlan
	}
	t := &store.Table{Store: r.s.Store, Info: r.query.Table}
	ed := t.EditorFor(ctx, r.s)
	ed.StatementBegin(ctx)
	changed, err := r.changeRows(ctx, ed, rows)
	if err == nil && r.s.WarningCount() > 0 {
		err = ErrPlan // go-mysql-server warns
	}
	if err != nil {
		_ = ed.DiscardChanges(ctx, err) // never fails
		return types.OkResult{}, err
	}
	return r.ok(ctx, len(rows), changed), ed.Close(ctx)
}

// changeRows changes rows, and returns the number of those that are not as they were.
func (r *run) changeRows(ctx *gms.Context, ed *store.Editor, rows []gms.Row) (int, error) {
	if len(r.query.Change.Set) == 0 {
		r.tr.Tx.ToFree()
	}
	changed := 0
	for i, old := range rows {
		if i%store.RowsBetweenLooks == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
		if len(r.query.Change.Set) == 0 {
			if err := ed.Delete(ctx, old); err != nil {
				return 0, err
			}
			changed++
			continue
		}
		row, err := r.updated(ctx, old, i+1)
		if err != nil {
			return 0, err
		}
		same, err := old.Equals(ctx, row, r.query.Table.Exact)
		if err != nil {
			return 0, err
		}
		if same {
			continue
		}
		if err := ed.Update(ctx, old, row); err != nil {
			return 0, err
		}
		changed++
	}
	return changed, nil
}

// updated returns a row after an UPDATE; number counts the rows of the statement.
func (r *run) updated(ctx *gms.Context, old gms.Row, number int) (gms.Row, error) {
	row := old
	for i := range r.query.Change.Set {
		set := &r.query.Change.Set[i]
		t := set.Column.Type(ctx)
		v, err := r.newValue(ctx, set, row)
		if err != nil {
			return nil, err
		}
		if v, err = store.Assign(ctx, v, t, set.Column.Name(), number); err != nil {
			return nil, err
		}
		if v == nil && !r.query.Table.Columns[set.Column.Index()].Nullable {
			return nil, ErrPlan
		}
		// SetField converts the value to the column's type.
		next, err := expression.NewSetField(set.Column, expression.NewLiteral(v, t)).Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		row = next.(gms.Row)
	}
	return row, nil
}

// newValue returns the value that a row's column is set to, before it is converted to the column's
// type.
func (r *run) newValue(ctx *gms.Context, set *plan.Setter, row gms.Row) (any, error) {
	if set.Expr != nil {
		return set.Expr.Eval(ctx, row)
	}
	v, ok := set.Value.In(r.values)
	if !ok {
		return nil, ErrPlan
	}
	p, ok := plan.NewParameter(ctx, plan.Operand{}, []plan.Value{v})
	if !ok {
		return nil, ErrPlan
	}
	return p.Value(), nil
}

// ok returns the result for the client.
func (r *run) ok(ctx *gms.Context, matched, changed int) types.OkResult {
	if len(r.query.Change.Set) == 0 {
		return types.NewOkResult(changed)
	}
	affected := changed
	if ctx.Client().Capabilities&mysql.CapabilityClientFoundRows != 0 {
		affected = matched
	}
	return types.OkResult{RowsAffected: uint64(affected), Info: gmsplan.UpdateInfo{Matched: matched, Updated: changed}}
}
