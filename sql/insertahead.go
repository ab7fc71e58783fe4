package sql

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// An INSERT checks for each row that its keys are not there yet, inserts it, and goes on to the next.
// If the table's indexes are at other machines, it would wait for each row and index. So the rows of
// VALUES, which go-mysql-server evaluates before it inserts the first, are taken many at a time
// (aheadIter), and their keys are looked up together. Then go-mysql-server inserts the rows one by one
// as ever, and its own checks find the answers at hand.
//
// When a row fails, the keys of the rows behind it have been looked up, too. So have the other
// keys of a row whose primary key exists. The price is a conflict if the transaction goes on and
// another transaction inserts one of these keys.

// noteInsert notes the VALUES of an INSERT whose keys can be looked up together. If a BEFORE
// trigger may change the rows, it notes nothing, because their keys are not known. In an open
// transaction it also notes nothing for a REPLACE or if there are triggers: triggers and cascades
// wait for their turn in the middle of the statement, and what was looked up before that would be
// too old.
func (s *Session) noteInsert(ctx *gms.Context, n *plan.InsertInto) {
	rows, ok := n.Source.(*plan.Project)
	if !ok {
		return
	}
	values, ok := rows.Child.(*plan.Values)
	if !ok || len(values.ExpressionTuples) < 2 {
		return
	}
	to, err := plan.GetInsertable(n.Destination)
	if err != nil {
		return // go-mysql-server reports the error
	}
	table, ok := underlying(to).(*store.Table)
	if !ok || len(rows.Projections) != len(table.Info.Columns) || !table.IsAnyElsewhere() {
		return
	}
	if s.IsOpen() && (n.IsReplace || s.hasTriggers(ctx, table)) {
		return
	}
	s.noteAhead(values, &insertAhead{table: table, columns: rows.Projections})
}

// hasTriggers reports whether a table has any triggers, or may have.
func (s *Session) hasTriggers(ctx *gms.Context, t *store.Table) bool {
	all, err := s.e.Store.Catalog.Triggers(store.Began(ctx).Tx, t.Info.DB, t.Info.Name)
	return err != nil || len(all) > 0
}

// An insertAhead looks up the keys of rows that are going to be inserted into a table. columns compute
// the table's columns from a row of VALUES.
type insertAhead struct {
	table   *store.Table
	columns []gms.Expression
}

// first implements lookAhead: all rows are inserted, unless one fails.
func (a *insertAhead) first() int { return aheadMost }

// lookUp implements lookAhead.
func (a *insertAhead) lookUp(ctx *gms.Context, values []gms.Row, _ gms.Row) error {
	rows := make([]gms.Row, len(values))
	for i, v := range values {
		rows[i] = make(gms.Row, len(a.columns))
		for at, e := range a.columns {
			rows[i][at] = given(e, v)
		}
	}
	return a.table.InsertAhead(ctx, rows)
}

// given returns the value that a row of VALUES gives for a column: Unknown if the value is
// computed, or is drawn from the AUTO_INCREMENT sequence when the row is inserted.
func given(column gms.Expression, values gms.Row) any {
	switch e := column.(type) {
	case *expression.GetField:
		if e.Index() < len(values) && !isLong(values[e.Index()]) {
			return values[e.Index()]
		}
	case *expression.AutoIncrement:
		v := given(e.Child, values)
		if n, ok := row.WholeNumber(v); ok && n != 0 {
			return v
		}
	}
	return store.Unknown{}
}

// isLong reports whether a value is a text that is longer than keys may be: the INSERT is going to
// refuse it or to shorten it.
func isLong(v any) bool {
	switch v := v.(type) {
	case string:
		return len(v) > row.KeyBytesMax
	case []byte:
		return len(v) > row.KeyBytesMax
	}
	return false
}
