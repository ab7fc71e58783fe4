package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/sql/row"
)

// A Join returns rows that consist of a row of each table, in the order of Tables. Its conditions
// number the columns as if all columns of all tables were read. Place returns a column's position
// in the rows.
type Join struct {
	Tables []JoinTable
	// Where has the conditions on the joined rows that no scan of a table has. All of them hold.
	Where []Condition
	// Orders are the ways to read the tables; any of them returns all rows.
	Orders []JoinOrder
	// Order is the wanted order of rows, if the reading order can provide it: a JoinOrder with
	// Ordered set does.
	Order []Order
	// Wants is the LIMIT on the wanted rows; nil if all are wanted.
	Wants *Limit
	// Number is the join's number among the sources of the query.
	Number int
}

// A JoinKind says what happens to a row of the earlier tables.
type JoinKind byte

const (
	Inner JoinKind = iota // it is joined with each row that belongs to it
	Left                  // like Inner, but without such a row it is joined with NULLs
	Semi                  // it is returned unchanged if a row belongs to it
	Anti                  // it is returned unchanged if no row belongs to it
)

var joinKinds = [...]string{"", " or NULLs", " has a row", " has no row"}

// Adds reports whether the joined rows include the table's rows.
func (k JoinKind) Adds() bool { return k <= Left }

// A JoinTable is a table of a join, or another node whose rows are joined.
type JoinTable struct {
	// Scan reads the table. If Source is set, only Columns (all columns of its rows) and Where are used.
	*Scan
	Kind JoinKind
	// Source returns the rows if they are not a table's. codecs then say how its columns are compared;
	// nil for a column that only its expression can compare.
	Source Node
	codecs []*row.KeyCodec
	// isIn is set for the table of a semi-join that is IN, not EXISTS.
	isIn bool
	// IsSet is set if the first column of Source is a set: equal rows count once, and rows with NULL do not count.
	IsSet bool
	// On has the conditions on the joined rows that decide, together with those of the scan, which rows
	// belong to a row of the earlier tables. It is empty for an inner join, whose conditions are in the
	// join's Where.
	On []Condition
	// First is the number of the table's first column among all columns. Offset is the position of
	// the table's first column in the joined rows.
	First, Offset int
}

// A JoinOrder is an order in which the tables of a join are read, in nested loops.
type JoinOrder struct {
	// Outer is the outermost table. Access is the number of the access in its scan; a scan without
	// accesses reads the whole table.
	Outer, Access int
	// Where has the numbers of the join's conditions that a row of Outer alone decides.
	Where []int
	// Steps are the other tables.
	Steps []JoinStep
	// Ordered is set if the rows come in the wanted order.
	Ordered bool
}

// A JoinStep reads the rows of a table that belong to a row of the earlier tables.
type JoinStep struct {
	Table int
	// Lookup finds the rows. Its parts are single values, some of them columns of the earlier tables.
	Lookup  Branch
	Reverse bool
	// IsKept is set if there is no Lookup: all rows are read once, and kept by the columns of Keys.
	IsKept bool
	Keys   []KeptKey
	// Where has the numbers of the join's conditions that are decided once this table's row, or its row of NULLs, is known.
	Where []int
}

// A KeptKey is a column by which a table's rows are kept (Column), and the column of the earlier
// tables that equals it (Outer).
type KeptKey struct{ Column, Outer int }

// tableOf returns the number of the table that has a column of the joined rows.
func (j *Join) tableOf(column int) int {
	t := len(j.Tables) - 1
	for j.Tables[t].First > column {
		t--
	}
	return t
}

// TableOf returns the table that has a column of the joined rows.
func (j *Join) TableOf(column int) *JoinTable { return &j.Tables[j.tableOf(column)] }

// EqualColumns returns a column of the joined rows, and those that equal it by the join's conditions.
func (j *Join) EqualColumns(column int) []int {
	all := []int{column}
	for i := 0; i < len(all); i++ {
		for _, c := range j.Where {
			same, ok := c.(Same)
			switch {
			case !ok:
			case same.Left == all[i] && !slices.Contains(all, same.Right):
				all = append(all, same.Right)
			case same.Right == all[i] && !slices.Contains(all, same.Left):
				all = append(all, same.Left)
			}
		}
	}
	return all
}

// IsKey reports whether a column of the table is its whole primary key.
func (t *JoinTable) IsKey(column int) bool {
	if t.Source != nil {
		return false
	}
	key := t.Table.PrimaryKey
	return key != nil && len(key.Columns) == 1 && key.Columns[0] == column
}

// Codec returns how a column of the joined rows is compared.
func (j *Join) Codec(column int) *row.KeyCodec {
	t := &j.Tables[j.tableOf(column)]
	return t.Codec(column - t.First)
}

// Codec returns the codec by which a column of the table is compared.
func (t *JoinTable) Codec(column int) *row.KeyCodec {
	if t.Source != nil {
		return t.codecs[column]
	}
	return t.Table.Codec(column)
}

// count returns the number of the table's columns.
func (t *JoinTable) count() int {
	if t.Source != nil {
		return len(t.codecs)
	}
	return len(t.Table.Columns)
}

// sources returns the nodes that take the places of tables.
func (j *Join) sources() (all []Node) {
	for i := range j.Tables {
		if s := j.Tables[i].Source; s != nil {
			all = append(all, s)
		}
	}
	return all
}

// name returns the table's name in plans.
func (t *JoinTable) name() string {
	if t.Source == nil {
		return t.Table.Name
	}
	if t.IsSet {
		return "a set"
	}
	return "rows"
}

// Place returns the position of a column in the joined rows.
func (j *Join) Place(column int) int {
	t := &j.Tables[j.tableOf(column)]
	return t.Offset + t.Scan.Place(column-t.First)
}

// Width returns the number of columns in the joined rows.
func (j *Join) Width() int {
	last := &j.Tables[len(j.Tables)-1]
	return last.Offset + last.Width()
}

func (j *Join) describe(b *strings.Builder, depth int) {
	line(b, depth, "join")
	for i, c := range j.Where {
		line(b, depth+1, "where %d %s", i+1, c)
	}
	for i := range j.Orders {
		j.Orders[i].describe(b, depth+1, j)
	}
	for i := range j.Tables {
		t := &j.Tables[i]
		line(b, depth+1, "#%d %s%s", t.First, t.name(), joinKinds[t.Kind])
		for _, c := range t.On {
			line(b, depth+2, "on %s", c)
		}
		if t.Where != nil {
			line(b, depth+2, "where %s", t.Where)
		}
		if t.Source != nil {
			t.Source.describe(b, depth+2)
		}
	}
}

func (o *JoinOrder) describe(b *strings.Builder, depth int, j *Join) {
	outer := &j.Tables[o.Outer]
	by := "all"
	if len(outer.Access) > 0 {
		by = outer.Access[o.Access].String()
	}
	order := ""
	if o.Ordered {
		order = ", in order"
	}
	// The access need not say "in order" again. One that is also backwards still does.
	line(b, depth, "order%s: #%d by %s%s", order, outer.First, strings.TrimSuffix(by, ", in order"), numbers(o.Where))
	for i := range o.Steps {
		s := &o.Steps[i]
		backwards := ""
		if s.Reverse {
			backwards = ", backwards"
		}
		line(b, depth+1, "then #%d by %s%s%s", j.Tables[s.Table].First, s.by(), backwards, numbers(s.Where))
	}
}

// by returns how a step finds its rows, for plans.
func (s *JoinStep) by() string {
	switch {
	case !s.IsKept:
		return s.Lookup.String()
	case len(s.Keys) == 0:
		return "all, kept"
	}
	text := "hash"
	for _, k := range s.Keys {
		text += " " + equal(k).String()
	}
	return text
}

// numbers returns the numbers of conditions as text, for plans.
func numbers(where []int) string {
	if len(where) == 0 {
		return ""
	}
	s := slices.Clone(where)
	for i := range s {
		s[i]++
	}
	return " where " + strings.Trim(fmt.Sprint(s), "[]")
}
