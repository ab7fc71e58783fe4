package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server has no CUME_DIST: the share of a window's rows up to the current row and its peers.

// cumeDistName is the function that divides the two numbers of rows. No client can write it.
const cumeDistName = "farmsql.cume_dist"

func init() {
	registerScalars(&scalar{cumeDistName, 2, 2, always(types.Float64), func(_ *gms.Context, _ *scalarCall, v gms.Row) (any, error) {
		return float64(v[0].(int64)) / float64(v[1].(int64)), nil
	}})
}

// countPeers turns CUME_DIST() OVER w into a function of two COUNT(*). The first counts the rows up
// to the current row's peers, the second all rows of the partition. A frame of w has no effect.
func countPeers(f *sqlparser.FuncExpr) {
	if f.Name.Lowered() != "cume_dist" || f.Over == nil || len(f.Exprs) > 0 {
		return
	}
	upTo := sqlparser.Over{PartitionBy: f.Over.PartitionBy, OrderBy: f.Over.OrderBy}
	f.Name = sqlparser.NewColIdent(cumeDistName)
	f.Exprs = sqlparser.SelectExprs{countOver(&upTo), countOver(&sqlparser.Over{PartitionBy: f.Over.PartitionBy})}
	f.Over = nil
}

func countOver(o *sqlparser.Over) *sqlparser.AliasedExpr {
	count := &sqlparser.FuncExpr{Name: sqlparser.NewColIdent("count"), Exprs: sqlparser.SelectExprs{&sqlparser.StarExpr{}}, Over: o}
	return &sqlparser.AliasedExpr{Expr: count}
}
