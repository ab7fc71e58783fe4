package sql

import (
	"errors"
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// statistics are go-mysql-server's, which divide by the number of rows of a table, and compare
// the values of indexed columns as Go does, which panics for bytes.
type statistics struct{ gms.StatsProvider }

// AnalyzeTable implements gms.StatsProvider. Of a table without rows, or with an index of
// bytes, nothing is known.
func (s statistics) AnalyzeTable(ctx *gms.Context, table gms.Table, db string) error {
	if indexesBytes(table) {
		return nil
	}
	empty, err := isEmpty(ctx, table)
	if empty || err != nil {
		return err
	}
	return s.StatsProvider.AnalyzeTable(ctx, table, db)
}

// isEmpty says whether the statement sees no rows in a table.
func isEmpty(ctx *gms.Context, table gms.Table) (bool, error) {
	parts, err := table.Partitions(ctx)
	if err != nil {
		return false, err
	}
	rows := gms.NewTableRowIter(ctx, table, parts)
	_, err = rows.Next(ctx)
	isEmpty := errors.Is(err, io.EOF)
	if isEmpty {
		err = nil
	}
	return isEmpty, errors.Join(err, rows.Close(ctx))
}

// indexesBytes reports whether an index of a table has a column whose values are not ones that
// Go compares.
func indexesBytes(table gms.Table) bool {
	t, ok := gms.GetUnderlyingTable(table).(*Table)
	if !ok {
		return false
	}
	for i, c := range t.info.Columns {
		switch k := c.Type.Kind; {
		case k == catalog.KindBinary, k == catalog.KindVarbinary, k == catalog.KindBlob, k >= catalog.KindJSON && k <= catalog.KindVector:
			if t.indexed(i) {
				return true
			}
		}
	}
	return false
}
