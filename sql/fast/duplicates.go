package fast

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// An onDuplicate says what an INSERT does with a row whose unique key exists.
type onDuplicate byte

const (
	fails    onDuplicate = iota
	skips                // INSERT IGNORE
	replaces             // REPLACE
	updates              // ON DUPLICATE KEY UPDATE
)

// An upsertion is an assignment of ON DUPLICATE KEY UPDATE. If given names a column, what the new row has there takes the
// place of the assignment's value, in a sum too. keeps is set for column = column.
type upsertion struct {
	assignment
	given string
	keeps bool
}

// duplicates takes what an INSERT does with duplicates into the shape; false if the shape cannot express it.
func (s *shape) duplicates(n *sqlparser.Insert) bool {
	switch {
	case n.Action == sqlparser.ReplaceStr:
		s.onDuplicate = replaces
		return n.Ignore == "" && len(n.OnDup) == 0
	case n.Action != sqlparser.InsertStr:
		return false
	case n.Ignore != "":
		s.onDuplicate = skips
		return len(n.OnDup) == 0
	case len(n.OnDup) > 0:
		s.onDuplicate = updates
	}
	for _, a := range n.OnDup {
		if !s.upsertion(a) {
			return false
		}
	}
	return true
}

// upsertion adds an assignment of ON DUPLICATE KEY UPDATE to the shape; false if the shape cannot express it, or assigns
// the column already.
func (s *shape) upsertion(a *sqlparser.AssignmentExpr) bool {
	to, ok := s.column(a.Name)
	if !ok {
		return false
	}
	for _, other := range s.upserts {
		if strings.EqualFold(other.column, to) {
			return false
		}
	}
	u := upsertion{assignment: assignment{column: to}}
	switch e := a.Expr.(type) {
	case *sqlparser.ColName:
		var from string
		from, ok = s.column(e)
		u.keeps = ok && strings.EqualFold(from, to)
		ok = u.keeps
	case *sqlparser.ValuesFuncExpr:
		u.given, ok = s.column(e.Name)
		ok = ok && strings.EqualFold(u.given, to)
	case *sqlparser.BinaryExpr:
		given, isGiven := e.Right.(*sqlparser.ValuesFuncExpr)
		switch {
		case !isGiven:
			ok = s.sum(&u.assignment, e)
		case e.Operator == sqlparser.PlusStr || e.Operator == sqlparser.MinusStr:
			u.minus = e.Operator == sqlparser.MinusStr
			if u.from, ok = s.column(e.Left); ok {
				u.given, ok = s.column(given.Name)
			}
		default:
			ok = false
		}
	default:
		u.value, ok = s.value(a.Expr)
	}
	s.upserts = append(s.upserts, u)
	return ok
}

// An upserter computes the value of an upsertion. from and given are columns, -1 if it has none.
type upserter struct {
	upsertion
	to, from, given int
	codec           *row.KeyCodec
}

// upsertersOf returns what computes the upsertions; false if go-mysql-server has to: a column is unknown, is in a foreign
// key, which would have to be checked, is no integer but in a sum, or is read after it has been set.
func upsertersOf(info *store.TableInfo, upsertions []upsertion) ([]upserter, bool) {
	var all []upserter
	for _, u := range upsertions {
		x := upserter{upsertion: u, to: info.Column(u.column), from: -1, given: -1}
		if x.to < 0 || info.InReference(x.to) {
			return nil, false
		}
		if u.keeps {
			continue
		}
		x.codec = info.Codec(x.to)
		if u.given != "" {
			if x.given = info.Column(u.given); x.given < 0 {
				return nil, false
			}
		}
		if u.from != "" {
			if x.from = info.Column(u.from); x.from < 0 || !x.codec.IsInteger() || !info.Codec(x.from).IsInteger() {
				return nil, false
			}
			for _, earlier := range all {
				if earlier.to == x.from {
					return nil, false
				}
			}
		}
		all = append(all, x)
	}
	return all, true
}

// mayFail reports whether an upsertion may fail: a sum may be out of range, and a unique key may exist.
func (u *upserter) mayFail(info *store.TableInfo) bool {
	if u.from >= 0 {
		return true
	}
	for _, k := range info.Keys() {
		if info.IsUnique(k) && slices.Contains(k.Columns, u.to) {
			return true
		}
	}
	return false
}

// A duplicating inserts rows some of which may exist, and counts what a client is told.
type duplicating struct {
	in     *insertion
	info   *store.TableInfo
	ed     *store.Editor
	values []Value
	// literals are the values of those upsertions that are literals.
	literals []any
	// rowsAffected counts 1 for a new row, 2 for one that has been updated, and each row that has been replaced;
	// first is the AUTO_INCREMENT number of the first new row, and last that of the last that is new or updated.
	rowsAffected uint64
	first, last  uint64
	countsFound  bool // also a row that is updated and does not change
	warnings     []*gms.Warning
}

// newDuplicating returns a duplicating for the values of an execution; false if a column would not store one unchanged.
func (in *insertion) newDuplicating(ctx *gms.Context, info *store.TableInfo, ed *store.Editor, values []Value) (*duplicating, bool) {
	d := &duplicating{in: in, info: info, ed: ed, values: values, literals: make([]any, len(in.upserters))}
	d.countsFound = ctx.Client().Capabilities&mysql.CapabilityClientFoundRows != 0
	for i := range in.upserters {
		u := &in.upserters[i]
		if u.from >= 0 || u.given >= 0 {
			continue
		}
		v, ok := u.value.in(values)
		v = forColumn(u.codec, v)
		if !ok || !takes(u.codec, v) {
			return nil, false
		}
		if v.IsNull {
			continue
		}
		if d.literals[i], ok = storedForm(ctx, u.codec, v); !ok {
			return nil, false
		}
	}
	return d, true
}

// insert inserts a row, or does with the row that is there already what the statement says.
func (d *duplicating) insert(ctx *gms.Context, r gms.Row) error {
	for {
		there, err := d.ed.InsertOrFind(ctx, r)
		switch {
		case err != nil:
			return err
		case there == nil:
			d.noteNew(r)
			return nil
		}
		switch d.in.onDuplicate {
		case fails:
			return ErrPlan // running the plan reports the error
		case skips:
			d.warnings = append(d.warnings, &gms.Warning{Level: "Warning", Code: mysql.ERDupEntry, Message: there.Text})
			return nil
		case updates:
			return d.update(ctx, there.Row, r)
		}
		if d.in.uniques == 1 {
			return d.replace(ctx, there.Row, r)
		}
		// A REPLACE: another row may have another unique key of the new row, so look again.
		if err := d.ed.Delete(ctx, there.Row); err != nil {
			return err
		}
		d.rowsAffected++
	}
}

// noteNew notes a row that has been inserted. A REPLACE tells of its number only if that is above 0.
func (d *duplicating) noteNew(r gms.Row) {
	d.rowsAffected++
	n := d.number(r)
	if d.in.onDuplicate == replaces && (n == 0 || isNegative(r[d.info.AutoColumn])) {
		return
	}
	if d.last = n; d.first == 0 { // 0: no row was new so far
		d.first = n
	}
}

// number returns the AUTO_INCREMENT number of a row, 0 if the table has none.
func (d *duplicating) number(r gms.Row) uint64 {
	if d.info.AutoColumn < 0 {
		return 0
	}
	return numberOf(r[d.info.AutoColumn])
}

// isNegative reports whether a whole number is below 0.
func isNegative(v any) bool {
	n, ok := row.Signed(v)
	return ok && n < 0
}

// update updates a row as ON DUPLICATE KEY UPDATE says.
func (d *duplicating) update(ctx *gms.Context, old, given gms.Row) error {
	r := old.Copy()
	for i := range d.in.upserters {
		u := &d.in.upserters[i]
		if u.from < 0 && u.given < 0 {
			r[u.to] = d.literals[i]
			continue
		}
		var ok bool
		if r[u.to], ok = u.valueOf(r, given, d.values); !ok {
			return ErrPlan
		}
	}
	isSame, err := d.put(ctx, old, r, d.in.touches)
	switch {
	case err != nil:
		return err
	case !isSame:
		d.rowsAffected += 2
		d.last = d.number(r)
	case d.countsFound:
		d.rowsAffected++
	}
	return nil
}

// replace puts a row in the place of the one that has its only unique key. As in MySQL, a row that is the same does not count as deleted.
func (d *duplicating) replace(ctx *gms.Context, old, r gms.Row) error {
	isSame, err := d.put(ctx, old, r, nil)
	if err != nil {
		return err
	}
	if !isSame {
		d.rowsAffected++
	}
	d.noteNew(r)
	return nil
}

// put changes a row, and sets the touches in it, unless it is the same as before.
func (d *duplicating) put(ctx *gms.Context, old, r gms.Row, t touches) (isSame bool, err error) {
	if isSame, err = old.Equals(ctx, r, d.info.Exact); err != nil || isSame {
		return isSame, err
	}
	if !t.set(ctx, r) {
		return false, ErrPlan
	}
	return false, d.ed.Update(ctx, old, r)
}

// valueOf returns the value of an upsertion that is not a literal, for a row and the one that was to be inserted; false if
// a sum is NULL, or out of range.
func (u *upserter) valueOf(r, given gms.Row, values []Value) (any, bool) {
	if u.from < 0 {
		return given[u.given], true
	}
	base, ok := row.WholeNumber(r[u.from])
	if !ok {
		return nil, false
	}
	var addend int64
	isUnsigned := isUnsignedNumber(r[u.from])
	if u.given >= 0 {
		isUnsigned = isUnsigned || isUnsignedNumber(given[u.given])
		addend, ok = row.WholeNumber(given[u.given])
	} else {
		var v Value
		v, ok = u.value.in(values)
		addend, ok = v.Number, ok && v.IsNumber
	}
	if !ok {
		return nil, false
	}
	result, ok := sum(base, addend, u.minus)
	if !ok || (result < 0 && isUnsigned) {
		return nil, false
	}
	return u.codec.Whole(result)
}
