package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/sql/row"
)

// A Join returns rows of several tables: a row of each after the other, in the order of Tables.
// Columns of its rows are numbered as if all columns of the tables were read; Place says where they
// are.
type Join struct {
	Tables []JoinTable
	// Where are conditions on the joined rows that no table's scan has. All of them hold.
	Where []Condition
	// Orders are the ways to read the tables; any of them returns all rows.
	Orders []JoinOrder
	// Order is the wanted order of rows, if the order of reading may give it; only a JoinOrder with
	// Ordered set does.
	Order []Order
	// Wants limits the rows that are wanted, nil if all are.
	Wants *Limit
	// Number is the join's number among the sources of the query.
	Number int
}

// A JoinKind says what becomes of a row of the tables before a table.
type JoinKind byte

const (
	Inner JoinKind = iota // it is joined with each row that belongs to it
	Left                  // so too, or with a row of NULLs if there is none
	Semi                  // it is returned, as it is, if a row belongs to it
	Anti                  // it is returned if none does
)

var joinKinds = [...]string{"", " or NULLs", " has a row", " has no row"}

// Adds reports whether the table's rows are joined with those before.
func (k JoinKind) Adds() bool { return k <= Left }

// A JoinTable is a table of a join, or the rows of another node.
type JoinTable struct {
	// Scan reads the table. Of the rows of another node it has Columns, which are all of them, and Where.
	*Scan
	Kind JoinKind
	// Source returns the rows if they are not those of a table; codecs are how its columns are compared,
	// nil for a column that may be compared by its expression only.
	Source Node
	codecs []*row.KeyCodec
	// IsSet is set if rows of Source that are equal in the first column count once, and not if that is NULL.
	IsSet bool
	// On are the conditions on the joined rows that decide, with those of the scan, which rows belong to
	// those of the tables before; none for an inner join, whose conditions are the join's.
	On []Condition
	// First is the number of the table's first column in the join's rows, and Offset the position of
	// the first one that is read.
	First, Offset int
}

// A JoinOrder is an order in which the tables of a join are read, one within the other.
type JoinOrder struct {
	// Outer is the outermost table. It is read by the Access of its scan with that number, or as a
	// whole if it has none.
	Outer, Access int
	// Where are the numbers of the join's conditions that are decided by a row of Outer.
	Where []int
	// Steps are the other tables.
	Steps []JoinStep
	// Ordered is set if the rows come in the wanted order.
	Ordered bool
}

// A JoinStep reads the rows of a table that belong to a row of the tables before.
type JoinStep struct {
	Table int
	// Lookup gives the rows. Its parts are single values, some of them of the tables before.
	Lookup  Branch
	Reverse bool
	// IsKept is set if there is no Lookup: all rows are read once, and kept by the columns of Keys.
	IsKept bool
	Keys   []KeptKey
	// Where are the numbers of the join's conditions that the row, or the one of NULLs, decides.
	Where []int
}

// A KeptKey is a column of a table by which its rows are kept, and the column of the tables before that
// equals it.
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

// Codec returns how a column of the table is compared.
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

// sources returns the nodes that are tables of a join.
func (j *Join) sources() (all []Node) {
	for i := range j.Tables {
		if s := j.Tables[i].Source; s != nil {
			all = append(all, s)
		}
	}
	return all
}

// name returns what plans show the table as.
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

// by returns how a step finds its rows, as plans show it.
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

// numbers returns the numbers of conditions as plans show them.
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
