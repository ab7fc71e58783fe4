package plan

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/information_schema"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// Shown returns the rows of a table of information_schema, which go-mysql-server makes.
type Shown struct {
	Table gms.Table
	// Conditions are the parts of the WHERE above. A row that one of them refuses may be left out.
	Conditions []gms.Expression
}

func (s *Shown) describe(b *strings.Builder, depth int) {
	line(b, depth, "information_schema.%s", s.Table.Name())
}

// shown returns the plan for a table of information_schema; nil for other tables.
func (b *builder) shown(n *gmsplan.ResolvedTable, columns gms.ColSet) (Node, scope) {
	switch n.Table.(type) {
	case *information_schema.InformationSchemaTable, *information_schema.ColumnsTable:
	default:
		return nil, scope{}
	}
	var s scope
	columns.ForEach(func(id gms.ColumnId) { s.ids = append(s.ids, id) })
	if len(s.ids) != len(n.Table.Schema(b.ctx)) {
		return nil, scope{}
	}
	return &Shown{Table: n.Table}, s
}

// shownFilter returns the plan of a WHERE over a table of information_schema.
func (b *builder) shownFilter(n *Shown, condition gms.Expression, s scope) (Node, scope, error) {
	condition, _, err := transform.Expr(b.ctx, condition, withoutList)
	if err != nil {
		return nil, scope{}, err
	}
	cond, err := b.expression(condition, s)
	if err != nil {
		return nil, scope{}, err
	}
	n.Conditions = expression.SplitConjunction(b.ctx, cond)
	return &Filter{n, cond}, s, nil
}

// withoutList turns IN of a list into comparisons with its values: go-mysql-server compares texts of a list by their
// collation only where it has planned the list.
func withoutList(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	in, ok := e.(*expression.InTuple)
	if !ok {
		return e, transform.SameTree, nil
	}
	list, ok := in.Right().(expression.Tuple)
	if _, isRow := in.Left().(expression.Tuple); !ok || isRow || len(list) > shownListMax {
		return nil, transform.SameTree, refused("a list beside information_schema")
	}
	var any gms.Expression = expression.NewEquals(in.Left(), list[0])
	for _, v := range list[1:] {
		any = expression.NewOr(any, expression.NewEquals(in.Left(), v))
	}
	return any, transform.NewTree, nil
}

// shownListMax bounds the lists of which withoutList makes comparisons.
const shownListMax = 16
