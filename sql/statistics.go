package sql

import (
	"errors"
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// statistics are go-mysql-server's, which divide by the number of rows of a table.
type statistics struct{ gms.StatsProvider }

// AnalyzeTable implements gms.StatsProvider. Of a table without rows nothing is known.
func (s statistics) AnalyzeTable(ctx *gms.Context, table gms.Table, db string) error {
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
