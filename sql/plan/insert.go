package plan

import (
	"fmt"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// An Insert is an INSERT or REPLACE of VALUES, or of the rows of a SELECT. Its node is
// go-mysql-server's, analyzed once. So the same code as without a plan handles each row: defaults,
// conversions, constraints, duplicates and references. Only the values, or the rows, differ between
// executions. One goroutine at a time runs an Insert.
type Insert struct {
	// Node is the INSERT.
	Node *gmsplan.InsertInto
	// Source is the plan of the SELECT; nil for VALUES. In Node, Rows takes its place.
	Source     *Query
	Rows       *Given
	table      *store.TableInfo
	parameters []*Parameter
	rows       [][]gms.Expression // those of VALUES
	// auto is the position of the AUTO_INCREMENT column in the rows; -1 if the rows lack it.
	auto     int
	autoType gms.Type
	// defaulted is the first row without a value for the AUTO_INCREMENT column; -1 if there is none.
	defaulted int
	// editors are the editors of the tables that foreign keys connect with the table.
	editors []*store.Editor
}

// Size returns the number of values in all rows.
func (in *Insert) Size() int {
	n := 0
	for _, row := range in.rows {
		n += len(row)
	}
	return n
}

// String returns the INSERT as plans show it.
func (in *Insert) String() string {
	name := "insert"
	switch {
	case in.Node.IsReplace:
		name = "replace"
	case in.Node.Ignore:
		name = "insert ignore"
	}
	if in.Source != nil {
		return fmt.Sprintf("%s rows into %s\n%s", name, in.table.Name, strings.TrimSuffix(in.Source.String(), "\n"))
	}
	s := fmt.Sprintf("%s %d rows into %s", name, len(in.rows), in.table.Name)
	if in.Node.OnDupExprs.HasUpdates() {
		s += ", or update"
	}
	return s
}

// BuildInsert returns the plan for a tree with Parameters that go-mysql-server has analyzed. The
// rows are those of source or, if source is nil, of VALUES. The error is an ErrRefused if the
// INSERT has another form, inserts into something other than table, or fires triggers.
func BuildInsert(ctx *gms.Context, root gms.Node, table *store.TableInfo, source *Query) (*Query, error) {
	n, ok := root.(*gmsplan.InsertInto)
	if !ok || len(n.Returning) > 0 || table == nil || table.HasVirtual {
		return nil, refused("the form of an INSERT")
	}
	columns, ok := n.Source.(*gmsplan.Project)
	if !ok {
		return nil, refused("INSERT of %T", n.Source)
	}
	in := &Insert{Node: n, table: table, Source: source, auto: -1, defaulted: n.FirstGeneratedAutoIncRowIdx}
	if err := in.checkInto(table); err != nil {
		return nil, err
	}
	if source != nil {
		in.Rows = &Given{schema: columns.Child.Schema(ctx)}
		in.Node = n.WithSource(gmsplan.NewProject(columns.Projections, in.Rows))
		return &Query{Insert: in}, nil
	}
	values, ok := columns.Child.(*gmsplan.Values)
	if !ok {
		return nil, refused("INSERT of %T", columns.Child)
	}
	in.rows = values.ExpressionTuples
	for _, row := range in.rows {
		if err := in.take(ctx, row); err != nil {
			return nil, err
		}
	}
	if err := in.take(ctx, n.OnDupExprs.AllExpressions()); err != nil {
		return nil, err
	}
	for _, e := range columns.Projections {
		if a, ok := e.(*expression.AutoIncrement); ok {
			if f, ok := a.Child.(*expression.GetField); ok {
				in.auto, in.autoType = f.Index(), a.Type(ctx)
			}
		}
	}
	return &Query{Insert: in}, nil
}

// checkInto finds the editors of the foreign keys. It returns an error if the rows do not go directly into the table.
func (in *Insert) checkInto(table *store.TableInfo) error {
	to, err := gmsplan.GetInsertable(in.Node.Destination)
	if err != nil {
		return refused("INSERT into %s", in.Node.Destination)
	}
	var into gms.Table = to
	if h, ok := to.(*gmsplan.ForeignKeyHandler); ok {
		in.gather(h.Editor, make(map[*gmsplan.ForeignKeyEditor]bool))
		into = h.Table
	}
	if t, ok := gms.GetUnderlyingTable(into).(*store.Table); !ok || t.Info != table {
		return refused("INSERT into another table than %s", table.Name)
	}
	return nil
}

// gather adds the editors of a table's foreign keys, and of all tables that these reach.
func (in *Insert) gather(e *gmsplan.ForeignKeyEditor, seen map[*gmsplan.ForeignKeyEditor]bool) {
	if e == nil || seen[e] {
		return
	}
	seen[e] = true
	in.add(e.Editor)
	for _, r := range e.References {
		in.add(r.RowMapper.Updater)
	}
	for _, a := range e.RefActions {
		in.add(a.RowMapper.Updater)
		in.gather(a.Editor, seen)
	}
}

func (in *Insert) add(e gms.ForeignKeyEditor) {
	if e, ok := e.(*store.Editor); ok {
		in.editors = append(in.editors, e)
	}
}

// Bind gives the INSERT its values; false if go-mysql-server has to plan the INSERT for these values.
func (in *Insert) Bind(ctx *gms.Context, values []Value) bool {
	for _, p := range in.parameters {
		if !p.Bind(values) {
			return false
		}
	}
	if in.Node.IsReplace { // nothing reads the number for an INSERT: see store.Session.Inserts
		in.Node.FirstGeneratedAutoIncRowIdx = in.firstGenerated(ctx)
	}
	return true
}

// Begin prepares the INSERT for an execution in a session's transaction. It returns false if a
// table has changed, so that go-mysql-server has to plan the INSERT again.
func (in *Insert) Begin(ctx *gms.Context, s *store.Session) bool {
	for _, e := range in.editors {
		// The editor's own check would report a conflict: it would read the descriptor that the editor
		// knows, which may have been freed.
		latest, err := e.Store.Descriptor(ctx, s.Began(ctx), e.Info.DB, e.Info.Name)
		if err != nil || latest != e.Info.Table || e.Renew(ctx, s) != nil {
			return false
		}
	}
	return true
}

// firstGenerated returns the number of the first row that gets an AUTO_INCREMENT number; -1 if there is none.
func (in *Insert) firstGenerated(ctx *gms.Context) int {
	if in.auto < 0 {
		return in.defaulted
	}
	keepsZero := gms.LoadSqlMode(ctx).ModeEnabled(gms.NoAutoValueOnZero)
	for i, row := range in.rows {
		if i == in.defaulted {
			return i
		}
		if p, ok := row[in.auto].(*Parameter); ok && p.draws(ctx, in.autoType, keepsZero) {
			return i
		}
	}
	return in.defaulted
}

// draws reports whether a parameter's value makes an AUTO_INCREMENT column of type typ draw a
// number. NULL does and, unless keepsZero is set, a value that is 0 in that type, as in
// go-mysql-server: 0.4 is 0 in an integer type.
func (p *Parameter) draws(ctx *gms.Context, typ gms.Type, keepsZero bool) bool {
	if p.Val == nil {
		return true
	}
	order, err := typ.Compare(ctx, p.Val, typ.Zero())
	return err == nil && order == 0 && !keepsZero
}

// take adds the parameters in expressions of columns' values. It returns an error for an expression
// that may depend on anything besides its operands and the context.
func (in *Insert) take(ctx *gms.Context, all []gms.Expression) (err error) {
	for _, e := range all {
		gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
			switch e.(type) {
			case nil, *Parameter, *expression.SetField, *expression.Wrapper:
			case *gms.ColumnDefaultValue: // belongs to the table
				return false
			default:
				if name := fmt.Sprintf("%T", e); err == nil && !knownExpressions[name] {
					err = refused("expression %s", name)
				}
			}
			return err == nil
		})
		in.parameters = append(in.parameters, parametersOf(ctx, e)...)
	}
	return err
}
