package tpch

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An answer is the result of a query.
type answer struct {
	columns []string
	// isDouble says of each column whether its type is DOUBLE or FLOAT.
	isDouble []bool
	rows     [][]sql.NullString
}

// readAnswer reads all rows, and closes them.
func readAnswer(rows *sql.Rows) (a *answer, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	a = new(answer)
	for _, t := range types {
		a.columns = append(a.columns, t.Name())
		a.isDouble = append(a.isDouble, slices.Contains([]string{"DOUBLE", "FLOAT"}, t.DatabaseTypeName()))
	}
	for rows.Next() {
		values, pointers := make([]sql.NullString, len(types)), make([]any, len(types))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		a.rows = append(a.rows, values)
	}
	return a, rows.Err()
}

// difference describes the first difference between two answers; empty if there is none.
func difference(a, b *answer, one, other string) string {
	if !slices.Equal(a.columns, b.columns) {
		return fmt.Sprintf("columns %v (%s) and %v (%s)", a.columns, one, b.columns, other)
	}
	for i := range max(len(a.rows), len(b.rows)) {
		if i >= len(a.rows) || i >= len(b.rows) {
			return fmt.Sprintf("%d rows (%s) and %d (%s)", len(a.rows), one, len(b.rows), other)
		}
		for c := range a.columns {
			if !isEqual(a.rows[i][c], b.rows[i][c], a.isDouble[c] || b.isDouble[c]) {
				return fmt.Sprintf("row %d: %s (%s) and %s (%s)", i+1, textOf(a.rows[i]), one, textOf(b.rows[i]), other)
			}
		}
	}
	return ""
}

// tolerance is by which part two DOUBLEs may differ.
const tolerance = 1e-9

func isEqual(a, b sql.NullString, isDouble bool) bool {
	if a == b || !isDouble || !a.Valid || !b.Valid {
		return a == b
	}
	x, err := strconv.ParseFloat(a.String, 64)
	y, otherErr := strconv.ParseFloat(b.String, 64)
	return err == nil && otherErr == nil && math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
}

func textOf(row []sql.NullString) string {
	var texts []string
	for _, v := range row {
		if !v.Valid {
			v.String = "NULL"
		}
		texts = append(texts, v.String)
	}
	return strings.Join(texts, " | ")
}
