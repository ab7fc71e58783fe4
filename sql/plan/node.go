package plan

import (
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/store"
)

// A Node returns rows.
type Node interface {
	// describe appends the node to a plan's text, each node on its own line, indented below its parent.
	describe(b *strings.Builder, depth int)
}

type (
	// One returns a single row without columns, for a SELECT without a table.
	One struct{}
	// Scan returns the rows of a table that meet a condition.
	Scan struct {
		Table *store.TableInfo
		// Columns are the columns that are read, in the table's order; nil for all.
		Columns []int
		// Sparse are the columns of whole rows that a change needs; the others are NULL in them. It is nil for all, and if Columns
		// is not.
		Sparse []int
		// Where uses the table's columns; nil for all rows.
		Where Condition
		// Access has the ways to read the table; each of them returns all rows that meet Where.
		Access []Access
		// Order is the wanted order of rows, if an index can provide it: an Access with Ordered set does.
		Order []Order
		// Wants is the LIMIT on the wanted rows; nil if all are wanted.
		Wants *Limit
		// End is set if only the first row is wanted.
		End bool
		// Whole is set if all rows are read.
		Whole bool
		// Number is the scan's number among the sources of the query.
		Number int
	}
	// Filter returns the rows for which an expression is true.
	Filter struct {
		Child Node
		Cond  gms.Expression
	}
	// Project returns a row of expressions for each row.
	Project struct {
		Child Node
		Exprs []gms.Expression
	}
	// Group returns a row for each group of rows: aggregates, and other expressions of the group's
	// first row. Without By all rows are one group, even if there are none.
	Group struct {
		Child Node
		By    []gms.Expression
		Exprs []gms.Expression
	}
	// Sort returns all rows in an order.
	Sort struct {
		Child Node
		By    []Order
		// Wants is the LIMIT on the wanted rows; nil if all are wanted.
		Wants *Limit
	}
	// Distinct returns rows that are not equal to an earlier one.
	Distinct struct {
		Child Node
		// Schema describes the columns.
		Schema gms.Schema
	}
	// Limit returns some of the rows.
	Limit struct {
		Child         Node
		Count, Offset *Operand // nil if there is none
	}
)

// An Order is an order of rows by an expression. NULL is below every value.
type Order struct {
	Expr gms.Expression
	Desc bool
	// Column is the position of the expression's column: among the table's columns for rows of a
	// table, or in the rows of a join. It is -1 if the expression is not a column.
	Column int
}

// childrenOf returns the nodes from whose rows a node makes its own.
func childrenOf(n Node) []Node {
	switch n := n.(type) {
	case *Filter:
		return []Node{n.Child}
	case *Project:
		return []Node{n.Child}
	case *Group:
		return []Node{n.Child}
	case *Window:
		return []Node{n.Child}
	case *Sort:
		return []Node{n.Child}
	case *Distinct:
		return []Node{n.Child}
	case *Limit:
		return []Node{n.Child}
	case *Derived:
		return []Node{n.Child}
	case *Exists:
		return []Node{n.Child}
	case *Union:
		return []Node{n.First, n.Second}
	case *Join:
		return n.sources()
	case *When:
		return []Node{n.Child, n.Query}
	}
	return nil
}

// Describe returns a tree of nodes as text.
func Describe(n Node) string {
	var b strings.Builder
	n.describe(&b, 0)
	return b.String()
}

func line(b *strings.Builder, depth int, format string, args ...any) {
	b.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(b, format, args...)
	b.WriteByte('\n')
}

func (One) describe(b *strings.Builder, depth int) { line(b, depth, "one row") }

func (s *Scan) describe(b *strings.Builder, depth int) {
	line(b, depth, "scan %s", s.Table.Name)
	if s.Where != nil {
		line(b, depth+1, "where %s", s.Where)
	}
	for i := range s.Access {
		line(b, depth+1, "by %s", s.Access[i].String())
	}
	if s.End {
		line(b, depth+1, "the first row")
	}
}

func (f *Filter) describe(b *strings.Builder, depth int) {
	line(b, depth, "filter %s", f.Cond)
	f.Child.describe(b, depth+1)
}

func (p *Project) describe(b *strings.Builder, depth int) {
	line(b, depth, "project %s", texts(p.Exprs))
	p.Child.describe(b, depth+1)
}

func (g *Group) describe(b *strings.Builder, depth int) {
	line(b, depth, "group by (%s): %s", texts(g.By), texts(g.Exprs))
	g.Child.describe(b, depth+1)
}

func (s *Sort) describe(b *strings.Builder, depth int) {
	name := "sort"
	if s.Wants != nil {
		name = "top"
	}
	var by []string
	for _, o := range s.By {
		by = append(by, o.Expr.String()+map[bool]string{true: " desc"}[o.Desc]) // nothing if it is ascending
	}
	line(b, depth, "%s by %s", name, strings.Join(by, ", "))
	s.Child.describe(b, depth+1)
}

func (d *Distinct) describe(b *strings.Builder, depth int) {
	line(b, depth, "distinct")
	d.Child.describe(b, depth+1)
}

func (l *Limit) describe(b *strings.Builder, depth int) {
	text := "limit"
	if l.Count != nil {
		text += " " + l.Count.String()
	}
	if l.Offset != nil {
		text += " offset " + l.Offset.String()
	}
	line(b, depth, "%s", text)
	l.Child.describe(b, depth+1)
}

func texts(all []gms.Expression) string {
	s := make([]string, len(all))
	for i, e := range all {
		s[i] = e.String()
	}
	return strings.Join(s, ", ")
}

// Width returns the number of columns that are read.
func (s *Scan) Width() int {
	if s.Columns == nil {
		return len(s.Table.Columns)
	}
	return len(s.Columns)
}

// Place returns the position of a table's column in the rows of a scan.
func (s *Scan) Place(column int) int {
	if s.Columns == nil {
		return column
	}
	at, _ := slices.BinarySearch(s.Columns, column)
	return at
}
