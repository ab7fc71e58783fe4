package fast

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A change is an UPDATE or DELETE of the single row of a key. It leaves statements with further
// effects to go-mysql-server: triggers, CHECKs, computed columns, and foreign keys that would have
// to be checked.
type change struct {
	// set is nil for a DELETE.
	set []setter
	// touches are set in a row that an UPDATE changes.
	touches touches
	// rest are the conditions besides the key.
	rest []residual
}

// A setter assigns a column's new value: a literal, or the sum or difference of another
// column and a literal.
type setter struct {
	assignment
	to, from int // columns: the one assigned to, and the one that a sum reads; from is -1 for a literal alone
	codec    *row.KeyCodec
}

// newChange returns the change for a shape; false if the shape is not that of a change
// of one row, or if the change has further effects, sums columns that are stored differently, or reads
// a column that it has set.
func newChange(info *store.TableInfo, l *lookup, s *shape, rest []residual) (*change, bool) {
	if l.isList() || !l.isPoint() || l.parts[len(l.parts)-1].isRange || !plainInserts(info) {
		return nil, false
	}
	ch := &change{rest: rest}
	for _, a := range s.set {
		set := setter{assignment: a, to: info.Column(a.column), from: -1}
		if set.to < 0 {
			return nil, false
		}
		set.codec = info.Codec(set.to)
		if a.from != "" {
			set.from = info.Column(a.from)
			if set.from < 0 || !set.codec.Sums(info.Codec(set.from)) || ch.sets(set.from) {
				return nil, false
			}
		}
		if info.InReference(set.to) {
			return nil, false
		}
		ch.set = append(ch.set, set)
	}
	if ch.set == nil {
		return ch, len(info.ReferencedBy) == 0
	}
	var ok bool
	ch.touches, ok = touchesOf(info, ch.sets)
	return ch, ok
}

// sets reports whether an UPDATE assigns a value to the column.
func (ch *change) sets(column int) bool {
	for _, s := range ch.set {
		if s.to == column {
			return true
		}
	}
	return false
}

// plainInserts reports whether storing a row has no further effects, foreign keys and touches aside.
func plainInserts(info *store.TableInfo) bool {
	for _, c := range info.Columns {
		if c.Generated != "" || c.Virtual || c.Hidden || c.HiddenSystem {
			return false
		}
	}
	return len(info.Table.Checks) == 0
}

// runChange changes the row whose key the literals give.
func (f *form) runChange(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	r, _, hasKey := f.lookup.keys(values)
	bounds, hasBounds := boundsOf(f.change.rest, values)
	if !hasKey || !hasBounds || !f.change.fits(values) {
		return nil, ErrPlan
	}
	if err := f.writable(c, tr); err != nil {
		return nil, err
	}
	if s.IsOpen() { // other open transactions may be changing the row
		c.st.Turns.Await(tr, f.lookup.index.Index, r.Low)
	}
	p, found, err := c.st.Access(f.lookup.index.Index).Get(tr.Tx, r.Low)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	if !found {
		return &Result{OK: f.change.okResult(ctx, 0, 0)}, nil
	}
	done, err := f.changeRow(ctx, c, s, tr, p, values, bounds)
	if err != nil {
		return nil, err
	}
	return &Result{OK: done}, nil
}

// writable returns ErrPlan if a change is not allowed, or runs triggers.
func (f *form) writable(c *Compiled, tr *store.Transaction) error {
	triggers, err := c.st.Catalog.Triggers(tr.Tx, f.info.DB, f.info.Name)
	if err != nil {
		return myerr.Storage(err)
	}
	if len(triggers) > 0 || tr.ReadOnly || store.Writers.Load() != store.WritersAll {
		return ErrPlan
	}
	return nil
}

// okResult returns the result for the client: the number of rows that were changed or, if the client has set
// CLIENT_FOUND_ROWS, that were matched.
func (ch *change) okResult(ctx *gms.Context, matched, changed int) types.OkResult {
	if ch.set == nil {
		return types.NewOkResult(changed)
	}
	affected := changed
	if ctx.Client().Capabilities&mysql.CapabilityClientFoundRows != 0 {
		affected = matched
	}
	return types.OkResult{RowsAffected: uint64(affected), Info: plan.UpdateInfo{Matched: matched, Updated: changed}}
}

// changeRow changes one row as go-mysql-server does through an editor. If the editor
// refuses, go-mysql-server runs the statement again to report why.
func (f *form) changeRow(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, p region.Ptr, values []Value, bounds [][]byte) (types.OkResult, error) {
	old, err := row.Load(tr.Tx, f.info.Rows, p, nil)
	if err != nil {
		return types.OkResult{}, myerr.Storage(err)
	}
	if !meets(f.change.rest, old, bounds) {
		return f.change.okResult(ctx, 0, 0), nil
	}
	row, ok := f.change.apply(ctx, old, values)
	if !ok {
		return types.OkResult{}, ErrPlan
	}
	t := &store.Table{Store: c.st, Info: f.info}
	if row != nil {
		same, err := old.Equals(ctx, row, f.info.Exact)
		if err != nil {
			return types.OkResult{}, ErrPlan
		}
		if same {
			return f.change.okResult(ctx, 1, 0), nil
		}
		if !f.change.touches.set(ctx, row) {
			return types.OkResult{}, ErrPlan
		}
	}
	ed := t.EditorFor(ctx, &s.Session)
	ed.StatementBegin(ctx)
	if row == nil {
		tr.Tx.ToFree()
		err = deleteAt(ctx, ed, p, old)
	} else {
		err = updateAt(ctx, ed, p, old, row)
	}
	if err != nil {
		_ = ed.DiscardChanges(ctx, err) // never fails
		if !myerr.IsConflict(err) {
			err = ErrPlan
		}
		return types.OkResult{}, err
	}
	return f.change.okResult(ctx, 1, 1), ed.Close(ctx)
}

// deleteAt deletes the row at p. In a table without a primary key, rows are changed by their values.
func deleteAt(ctx *gms.Context, ed *store.Editor, p region.Ptr, old gms.Row) error {
	if ed.Info.IsKeyless() {
		return ed.Delete(ctx, old)
	}
	return ed.DeleteAt(ctx, p, old)
}

// updateAt replaces the row at p.
func updateAt(ctx *gms.Context, ed *store.Editor, p region.Ptr, old, r gms.Row) error {
	if ed.Info.IsKeyless() {
		return ed.Update(ctx, old, r)
	}
	return ed.UpdateAt(ctx, p, old, r)
}

// fits reports whether the literals have their columns' types; if not, nothing needs to
// be read.
func (ch *change) fits(values []Value) bool {
	for i := range ch.set {
		s := &ch.set[i]
		v, ok := s.literal(values)
		if !ok || !takes(s.codec, v) {
			return false
		}
	}
	return true
}

// apply returns the row after an UPDATE, or nil for a DELETE. It returns false if this package cannot
// compute a value, or if the column would store it converted.
func (ch *change) apply(ctx *gms.Context, old gms.Row, values []Value) (gms.Row, bool) {
	if ch.set == nil {
		return nil, true
	}
	row := old.Copy()
	for i := range ch.set {
		v, ok := ch.set[i].eval(ctx, row, values)
		if !ok {
			return nil, false
		}
		row[ch.set[i].to] = v
	}
	return row, true
}

// literal returns the literal in the form in which the column takes it or, in a sum, as it is: a string that
// is added to a column is a double in MySQL.
func (s *setter) literal(values []Value) (Value, bool) {
	v, ok := s.value.in(values)
	if s.from >= 0 {
		return v, ok
	}
	return forColumn(s.codec, v), ok
}

// eval returns the new value for row r. It returns false if this package cannot compute it, or if the
// column would store it converted.
func (s *setter) eval(ctx *gms.Context, r gms.Row, values []Value) (any, bool) {
	v, ok := s.literal(values)
	if !ok || v.IsNull {
		return nil, ok && s.from < 0
	}
	if s.from >= 0 && s.codec.Kind == catalog.KindDecimal {
		return s.decimal(ctx, r[s.from], v.Text)
	}
	if s.from >= 0 {
		base, ok := row.WholeNumber(r[s.from])
		if !ok {
			return nil, false
		}
		if v.Number, ok = sum(base, v.Number, s.minus); !ok || (v.Number < 0 && isUnsignedNumber(r[s.from])) {
			return nil, false
		}
	}
	return storedForm(ctx, s.codec, v)
}

// isUnsignedNumber reports whether a number is of an unsigned column. Then a sum or difference of it is unsigned, too.
func isUnsignedNumber(v any) bool {
	_, ok := row.Unsigned(v)
	return ok
}

// decimal adds a text to a decimal column's value, or subtracts it, with go-mysql-server's own
// expression: in MySQL both are doubles, and so is their sum. It returns false if the value is NULL, or the text spells no
// decimal.
func (s *setter) decimal(ctx *gms.Context, base any, text string) (any, bool) {
	if base == nil || !row.IsDecimalText(text) {
		return nil, false
	}
	left, right := expression.NewLiteral(base, s.codec.Type), expression.NewLiteral(text, types.LongText)
	sum := expression.NewPlus(left, right)
	if s.minus {
		sum = expression.NewMinus(left, right)
	}
	v, err := sum.Eval(ctx, nil)
	if err != nil {
		return nil, false
	}
	v, err = store.Assign(ctx, v, s.codec.Type, "", 0)
	_, ok := v.(decimal.Decimal)
	return v, ok && err == nil
}

// sum returns a + b or a - b; false if it overflows, which is when the result is on the wrong side of a.
func sum(a, b int64, minus bool) (int64, bool) {
	if minus {
		return a - b, (a-b < a) == (b > 0)
	}
	return a + b, (a+b > a) == (b > 0)
}
