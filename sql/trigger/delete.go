package trigger

import (
	"cmp"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

var _ gms.ExecBuilderNode = (*separated)(nil)

// deleteTriggers adds the triggers of each table that a DELETE deletes from to that table. If the DELETE is from a
// join, it also puts a separated above the join.
func (p *planner) deleteTriggers(ctx *gms.Context, n *plan.DeleteFrom) (gms.Node, transform.TreeIdentity, error) {
	targets, names := slices.Clone(n.GetDeleteTargets()), make(map[string]*plan.ResolvedTable)
	isJoin := n.HasExplicitTargets()
	isFiring := isJoin
	for i, target := range targets {
		table := &firingTable{a: p.a, node: target, isJoined: isJoin}
		all, err := p.firedBy(ctx, resolvedIn(target), plan.DeleteTrigger)
		if err != nil {
			return n, transform.SameTree, err
		}
		table.deleted, table.before = all.after, all.before
		isFiring = isFiring || all.any()
		deletable, err := plan.GetDeletable(target)
		if err != nil {
			return n, transform.SameTree, err
		}
		insertable, ok := deletable.(gms.InsertableTable)
		if !ok {
			return n, transform.SameTree, plan.ErrDeleteFromNotSupported.New()
		}
		table.InsertableTable = insertable
		targets[i] = table
		names[nameIn(target, deletable)] = resolvedIn(target)
	}
	if !isFiring {
		return n, transform.SameTree, nil
	}
	n = n.WithTargets(targets)
	if !isJoin {
		return n, transform.NewTree, nil
	}
	out, err := n.WithChildren(ctx, &separated{plan.UnaryNode{Child: n.Child}, names})
	return out, transform.NewTree, err
}

// nameIn returns the name that the target of a DELETE has in its FROM clause.
func nameIn(target gms.Node, table gms.Table) string {
	name := table.Name()
	transform.Inspect(target, func(n gms.Node) bool {
		alias, ok := n.(*plan.TableAlias)
		if ok {
			name = alias.Name()
		}
		return !ok
	})
	return name
}

// A separated is the source of a DELETE from a join. Each of its rows has a row of one of the tables to delete from,
// and NULL in all other columns; no row of a table comes twice. So the number of its rows is the number of deleted
// rows.
type separated struct {
	plan.UnaryNode
	names map[string]*plan.ResolvedTable // the tables to delete from, by their names in the join
}

// Schema implements gms.Node.
func (s *separated) Schema(ctx *gms.Context) gms.Schema { return s.named(ctx).Schema(ctx) }

// String implements gms.Node.
func (s *separated) String() string { return s.Child.String() }

// IsReadOnly implements gms.Node.
func (s *separated) IsReadOnly() bool { return s.Child.IsReadOnly() }

// WithChildren implements gms.Node.
func (s *separated) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(s, len(children), 1)
	}
	return &separated{plan.UnaryNode{Child: children[0]}, s.names}, nil
}

// BuildRowIter implements gms.ExecBuilderNode.
func (s *separated) BuildRowIter(ctx *gms.Context, b gms.NodeExecBuilder, row gms.Row) (gms.RowIter, error) {
	child := s.named(ctx)
	columns, tables := child.Schema(ctx), []section(nil)
	for name, table := range s.names { // any order: they are sorted
		t, err := sectionOf(ctx, columns, name, table)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	slices.SortFunc(tables, func(a, b section) int { return cmp.Compare(a.table, b.table) })
	rows, err := b.Build(ctx, child, row)
	if err != nil {
		return nil, err
	}
	return &separatedIter{newRowsOf(ctx, &innerIter{rows, len(columns)}, tables)}, nil
}

// named returns the join with the names that its tables to delete from have in the FROM clause: where go-mysql-server
// makes an outer join of NOT EXISTS, the columns above have the names of the tables themselves.
func (s *separated) named(ctx *gms.Context) gms.Node {
	names := make(map[gms.TableId]string, len(s.names))
	for name, table := range s.names { // any order: into a map
		names[table.Id()] = name
	}
	// It never fails: a Project takes as many expressions as it has.
	n, _, _ := transform.Node(ctx, s.Child, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		project, ok := n.(*plan.Project)
		if !ok {
			return n, transform.SameTree, nil
		}
		exprs, same := slices.Clone(project.Projections), transform.SameTree
		for i, e := range exprs {
			f, ok := e.(*expression.GetField)
			if !ok {
				continue
			}
			if name := names[f.TableId()]; name != "" && !strings.EqualFold(name, f.Table()) {
				exprs[i], same = f.WithTable(name), transform.NewTree
			}
		}
		if same {
			return n, same, nil
		}
		out, err := project.WithExpressions(ctx, exprs...)
		return out, same, err
	})
	return n
}

// A separatedIter returns the rows of a separated.
type separatedIter struct{ *rowsOf }

// Next implements gms.RowIter.
func (i *separatedIter) Next(ctx *gms.Context) (gms.Row, error) {
	at, row, err := i.rowsOf.Next(ctx)
	if err != nil {
		return nil, err
	}
	t := &i.tables[at]
	out := make(gms.Row, len(row))
	copy(t.of(out), t.of(row))
	return out, nil
}

// An innerIter leaves out the columns of outer queries, which come first.
type innerIter struct {
	gms.RowIter
	width int
}

// Next implements gms.RowIter.
func (i *innerIter) Next(ctx *gms.Context) (gms.Row, error) {
	row, err := i.RowIter.Next(ctx)
	if err != nil {
		return nil, err
	}
	return row[len(row)-i.width:], nil
}
