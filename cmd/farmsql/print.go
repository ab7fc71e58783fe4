package main

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// run executes one statement and prints its result.
func (sh *shell) run(ctx context.Context, c command) error {
	start := time.Now()
	if !returnsRows(c.text) {
		res, err := sh.conn.ExecContext(ctx, c.text)
		if err != nil {
			return err
		}
		if sh.talk {
			n, _ := res.RowsAffected() // never fails for this driver
			fmt.Fprintf(sh.out, "OK, %s affected (%s)\n", count(n), seconds(start))
		}
		return nil
	}
	rows, err := sh.conn.QueryContext(ctx, c.text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		n, err := sh.print(rows, c.vertical)
		if err != nil {
			return err
		}
		if sh.talk {
			fmt.Fprintf(sh.out, "%s (%s)\n", count(n), seconds(start))
		}
		if !rows.NextResultSet() {
			return rows.Err()
		}
	}
}

// returnsRows reports whether a statement is a query, by its first word.
func returnsRows(statement string) bool {
	word := strings.TrimLeft(statement, "( \t\n")
	isLetter := func(r rune) bool { lower := r | 0x20; return lower >= 'a' && lower <= 'z' }
	if end := strings.IndexFunc(word, func(r rune) bool { return !isLetter(r) }); end >= 0 {
		word = word[:end]
	}
	switch strings.ToLower(word) {
	case "select", "show", "describe", "desc", "explain", "with", "table", "values", "call", "execute", "check", "analyze":
		return true
	}
	return false
}

func count(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

func seconds(since time.Time) string { return fmt.Sprintf("%.3f s", time.Since(since).Seconds()) }

// print writes one result set and returns how many rows it had.
func (sh *shell) print(rows *stdsql.Rows, vertical bool) (int64, error) {
	columns, err := rows.Columns()
	if err != nil || len(columns) == 0 {
		return 0, err
	}
	switch {
	case vertical:
		return sh.printVertical(rows, columns)
	case sh.table:
		return sh.printTable(rows, columns)
	}
	return sh.printTabs(rows, columns)
}

// eachRow calls fn with the values of every row. The values of NULL have Valid unset.
func eachRow(rows *stdsql.Rows, columns []string, fn func([]stdsql.NullString)) (n int64, err error) {
	values := make([]stdsql.NullString, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return n, err
		}
		fn(values)
		n++
	}
	return n, rows.Err()
}

func orNull(v stdsql.NullString) string {
	if !v.Valid {
		return "NULL"
	}
	return v.String
}

func (sh *shell) printTable(rows *stdsql.Rows, columns []string) (int64, error) {
	w := table.NewWriter()
	w.SetOutputMirror(sh.out)
	w.Style().Format.Header = text.FormatDefault // column names unchanged
	header := make(table.Row, len(columns))
	for i, c := range columns {
		header[i] = c
	}
	w.AppendHeader(header)
	n, err := eachRow(rows, columns, func(values []stdsql.NullString) {
		row := make(table.Row, len(values))
		for i, v := range values {
			row[i] = orNull(v)
		}
		w.AppendRow(row)
	})
	if n > 0 {
		w.Render()
	}
	return n, err
}

var tabEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\x00", `\0`)

func (sh *shell) printTabs(rows *stdsql.Rows, columns []string) (int64, error) {
	fmt.Fprintln(sh.out, strings.Join(columns, "\t"))
	line := make([]string, len(columns))
	return eachRow(rows, columns, func(values []stdsql.NullString) {
		for i, v := range values {
			line[i] = orNull(v)
			if v.Valid {
				line[i] = tabEscapes.Replace(v.String)
			}
		}
		fmt.Fprintln(sh.out, strings.Join(line, "\t"))
	})
}

func (sh *shell) printVertical(rows *stdsql.Rows, columns []string) (int64, error) {
	width := 0
	for _, c := range columns {
		width = max(width, len(c))
	}
	row := 0
	return eachRow(rows, columns, func(values []stdsql.NullString) {
		row++
		fmt.Fprintf(sh.out, "*************************** %d. row ***************************\n", row)
		for i, v := range values {
			fmt.Fprintf(sh.out, "%*s: %s\n", width, columns[i], orNull(v))
		}
	})
}
