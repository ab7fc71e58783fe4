package exec

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// changedMax bounds the rows that a statement changes, because all of them are read before the
// first is changed. go-mysql-server changes more rows, for which it keeps only their addresses.
const changedMax = 10000

// change runs an UPDATE or DELETE: it changes the rows of one table after the other.
func (r *run) change(ctx *gms.Context) (types.OkResult, error) {
	rows, addresses, err := r.toChange(ctx)
	if err != nil {
		return types.OkResult{}, err
	}
	if len(rows) > changedMax {
		return types.OkResult{}, ErrPlan
	}
	var editors []*store.Editor
	for i := range r.query.Change.Tables {
		t := &store.Table{Store: r.s.Store, Info: r.query.Change.Tables[i].Table}
		ed := t.EditorFor(ctx, r.s)
		ed.Sparse(r.query.Change.Tables[i].Sparse)
		ed.StatementBegin(ctx)
		editors = append(editors, ed)
	}
	matched, changed, err := r.changeTables(ctx, editors, rows, addresses)
	if err == nil && r.s.WarningCount() > 0 {
		err = ErrPlan // go-mysql-server warns
	}
	for _, ed := range slices.Backward(editors) {
		if err != nil {
			_ = ed.DiscardChanges(ctx, err) // never fails
			continue
		}
		err = ed.Close(ctx)
	}
	if err != nil {
		return types.OkResult{}, err
	}
	return r.okResult(ctx, matched, changed), nil
}

// toChange returns the rows to change, and their addresses unless they are of a join or in an order that no index has.
func (r *run) toChange(ctx *gms.Context) (rows []gms.Row, addresses []region.Ptr, err error) {
	opened, err := r.open(ctx, r.query.Rows)
	if err != nil {
		return nil, nil, err
	}
	scan, ok := opened.(addressed)
	if !ok || !scan.HasAddresses() {
		rows, err = r.collect(ctx, opened, nil)
		return rows, nil, err
	}
	rows, err = r.collect(ctx, opened, func() { addresses = append(addresses, scan.Address()) })
	return rows, addresses, err
}

// addressed are rows of a table as they are stored.
type addressed interface {
	// HasAddresses reports whether Address may be called.
	HasAddresses() bool
	// Address returns the address of the row that Next has returned last.
	Address() region.Ptr
}

// changeTables changes the rows of all tables. It returns how many rows it was given, and how many of them differ
// afterwards. addresses are those of the rows, or nil.
func (r *run) changeTables(ctx *gms.Context, editors []*store.Editor, rows []gms.Row, addresses []region.Ptr) (matched, changed int, err error) {
	if r.query.Change.Deletes {
		r.tr.Tx.ToFree()
	}
	isOnly := len(editors) == 1 && !isJoin(r.query.Rows) // a row of a single table comes only once
	for i, ed := range editors {
		t := &r.query.Change.Tables[i]
		own := rows
		if !isOnly {
			if own, err = r.once(ctx, t, rows); err != nil {
				return 0, 0, err
			}
		}
		n, err := r.changeRows(ctx, ed, t, own, addresses)
		if err != nil {
			return 0, 0, err
		}
		matched, changed = matched+len(own), changed+n
	}
	return matched, changed, nil
}

func isJoin(n plan.Node) bool {
	_, ok := n.(*plan.Join)
	return ok
}

// once returns, for each row of a table, the first joined row that contains it. It leaves out
// joined rows that contain only NULLs of the table.
func (r *run) once(ctx *gms.Context, t *plan.ChangedTable, rows []gms.Row) ([]gms.Row, error) {
	key := t.Table.PrimaryKey
	seen := make(map[string]bool, len(rows))
	var out []gms.Row
	for _, row := range rows {
		own := t.Of(row)
		if own[key.Columns[0]] == nil {
			continue
		}
		k, _, err := key.Entry(ctx, own, nil)
		if err != nil {
			return nil, err
		}
		if !seen[string(k)] {
			seen[string(k)] = true
			out = append(out, row)
		}
	}
	return out, nil
}

// changeRows changes rows of a table, and returns how many of them differ afterwards. addresses are those of the rows, or
// nil.
func (r *run) changeRows(ctx *gms.Context, ed *store.Editor, t *plan.ChangedTable, rows []gms.Row, addresses []region.Ptr) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	constants, err := r.constants(ctx, t)
	if err != nil {
		return 0, err
	}
	changed := 0
	for i, row := range rows {
		if i%store.RowsBetweenLooks == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
		old := t.Of(row)
		if r.query.Change.Deletes {
			if err := deleteRow(ctx, ed, old, addresses, i); err != nil {
				return 0, err
			}
			changed++
			continue
		}
		updated, err := r.updated(ctx, t, constants, row, i+1)
		if err != nil {
			return 0, err
		}
		same, err := isUnchanged(ctx, t, old, updated)
		if err != nil {
			return 0, err
		}
		if same {
			continue
		}
		if err := touch(ctx, t, updated); err != nil {
			return 0, err
		}
		if err := updateRow(ctx, ed, old, updated, addresses, i); err != nil {
			return 0, err
		}
		changed++
	}
	return changed, nil
}

// touch assigns the time of the statement to columns of a changed row.
func touch(ctx *gms.Context, t *plan.ChangedTable, row gms.Row) error {
	for i := range t.Touched {
		set := &t.Touched[i]
		v, err := set.Expr.Eval(ctx, nil)
		if err != nil {
			return err
		}
		if row[set.Column.Index()], err = assigned(ctx, t, set, v, 1); err != nil {
			return err
		}
	}
	return nil
}

// deleteRow deletes row i, by its address if that is known.
func deleteRow(ctx *gms.Context, ed *store.Editor, old gms.Row, addresses []region.Ptr, i int) error {
	if addresses == nil {
		return ed.Delete(ctx, old)
	}
	return ed.DeleteAt(ctx, addresses[i], old)
}

// updateRow replaces row i, by its address if that is known.
func updateRow(ctx *gms.Context, ed *store.Editor, old, updated gms.Row, addresses []region.Ptr, i int) error {
	if addresses == nil {
		return ed.Update(ctx, old, updated)
	}
	return ed.UpdateAt(ctx, addresses[i], old, updated)
}

// isUnchanged reports whether the columns that are set have the values that they had.
func isUnchanged(ctx *gms.Context, t *plan.ChangedTable, old, updated gms.Row) (bool, error) {
	for i := range t.Set {
		c := t.Set[i].Column.Index()
		a, b := old[c], updated[c]
		if a == nil || b == nil {
			if a != b {
				return false, nil
			}
			continue
		}
		n, err := t.Table.Exact[c].Type.Compare(ctx, a, b)
		if err != nil || n != 0 {
			return false, err
		}
	}
	return true, nil
}

// constants returns, for each setter of a table, the value that it assigns to all rows; nil for one with an Expr.
func (r *run) constants(ctx *gms.Context, t *plan.ChangedTable) ([]any, error) {
	all := make([]any, len(t.Set))
	for i := range t.Set {
		set := &t.Set[i]
		if set.Expr != nil {
			continue
		}
		v, ok := set.Value.In(r.values)
		if !ok {
			return nil, ErrPlan
		}
		p, ok := plan.NewParameter(ctx, plan.Operand{}, []plan.Value{v})
		if !ok {
			return nil, ErrPlan
		}
		var err error
		if all[i], err = assigned(ctx, t, set, p.Value(), 1); err != nil { // an error is that of row 1
			return nil, err
		}
	}
	return all, nil
}

// updated returns a table's part of a row after an UPDATE; number counts the rows of the table.
func (r *run) updated(ctx *gms.Context, t *plan.ChangedTable, constants []any, row gms.Row, number int) (gms.Row, error) {
	out := t.Of(row).Copy()
	for i := range t.Set {
		set, v := &t.Set[i], constants[i]
		if set.Expr != nil {
			var err error
			if v, err = set.Expr.Eval(ctx, row); err != nil {
				return nil, err
			}
			if v, err = assigned(ctx, t, set, v, number); err != nil {
				return nil, err
			}
		}
		out[set.Column.Index()] = v
	}
	return out, nil
}

// assigned returns a value in the form in which the column stores it; ErrPlan for NULL in a column that cannot be NULL,
// and for a value that does not fit if sql_mode is not strict. number is the row's number, for errors.
func assigned(ctx *gms.Context, t *plan.ChangedTable, set *plan.Setter, v any, number int) (any, error) {
	typ := set.Column.Type(ctx)
	v, err := store.Assign(ctx, v, typ, set.Column.Name(), number)
	if err == nil && v != nil {
		v, _, err = typ.Convert(ctx, v)
	}
	isMissing := err == nil && v == nil && !t.Table.Columns[set.Column.Index()].Nullable
	if isMissing || (err != nil && !store.IsStrict(ctx)) {
		err = ErrPlan
	}
	return v, err
}

// okResult returns the result for the client: the number of rows that were changed or, if the client has set
// CLIENT_FOUND_ROWS, that were matched.
func (r *run) okResult(ctx *gms.Context, matched, changed int) types.OkResult {
	if r.query.Change.Deletes {
		return types.NewOkResult(changed)
	}
	affected := changed
	if ctx.Client().Capabilities&mysql.CapabilityClientFoundRows != 0 {
		affected = matched
	}
	return types.OkResult{RowsAffected: uint64(affected), Info: gmsplan.UpdateInfo{Matched: matched, Updated: changed}}
}
