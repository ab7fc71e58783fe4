package sql

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// indexRows is SHOW INDEX as a query, as MySQL runs it. The query reads the table itself,
// too, so that it fails if the table does not exist or the user may not read it.
const indexRows = "SELECT * FROM (SELECT table_name AS `Table`, non_unique AS Non_unique, index_name AS Key_name, " +
	"seq_in_index AS Seq_in_index, column_name AS Column_name, collation AS Collation, cardinality AS Cardinality, " +
	"sub_part AS Sub_part, packed AS Packed, nullable AS `Null`, index_type AS Index_type, comment AS Comment, " +
	"index_comment AS Index_comment, is_visible AS Visible, expression AS Expression FROM information_schema.statistics " +
	"WHERE table_schema = $schema AND LOWER(table_name) = LOWER($name) AND NOT EXISTS (SELECT 1 FROM $table WHERE FALSE)) s WHERE TRUE"

// filteredShow replaces SHOW INDEX with a WHERE, which go-mysql-server parses and ignores,
// by the equivalent query. It returns other statements unchanged.
func filteredShow(stmt sqlparser.Statement) (sqlparser.Statement, error) {
	s, ok := stmt.(*sqlparser.Show)
	if !ok || s.ShowIndexFilterOpt == nil || s.Type != sqlparser.IndexStr {
		return stmt, nil
	}
	table := s.Table
	schema := "DATABASE()"
	if s.Database != "" {
		table.DbQualifier = sqlparser.NewTableIdent(s.Database)
	}
	if q := table.DbQualifier.String(); q != "" {
		schema = sqlparser.String(sqlparser.NewStrVal([]byte(q)))
	}
	name := sqlparser.String(sqlparser.NewStrVal([]byte(table.Name.String())))
	query := strings.NewReplacer("$schema", schema, "$name", name, "$table", sqlparser.String(table)).Replace(indexRows)
	all, err := sqlparser.Parse(query)
	if err != nil {
		return nil, err
	}
	all.(*sqlparser.Select).Where.Expr = s.ShowIndexFilterOpt
	return all, nil
}

// showIndexes executes SHOW INDEX with the order of each index and the lengths of
// prefixes, which go-mysql-server leaves out.
func showIndexes(ctx *gms.Context, n *plan.ShowIndexes, row gms.Row) (gms.RowIter, error) {
	all, err := theirRows(ctx, n, row)
	if err != nil {
		return nil, err
	}
	const name, part, order, length = 2, 3, 5, 7
	for _, r := range all {
		r[order] = "A"
		at := slices.IndexFunc(n.IndexesToShow, func(x gms.Index) bool { return x.ID() == r[name] })
		if at < 0 {
			continue
		}
		lengths := n.IndexesToShow[at].PrefixLengths()
		if i := r[part].(int) - 1; i < len(lengths) && lengths[i] > 0 {
			r[length] = int64(lengths[i])
		}
	}
	return gms.RowsToRowIter(all...), nil
}
