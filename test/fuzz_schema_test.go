package test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A fuzzType is a type of columns, with some of its values as SQL text. The values are few, so that
// columns have equal ones.
type fuzzType struct {
	sql    string
	values []string
	// folds means that different values may be equal.
	folds bool
	// text means that LIKE makes sense.
	text bool
	// unordered means that values are only compared for equality. MySQL compares an ENUM by its
	// text, and sorts it by its position; farmsql always uses the position.
	unordered bool
}

var (
	fuzzWords = []string{"''", "'a'", "'A'", "'az'", "'aZ'", "'b'", "'ab'", "'abc'", "'é'", "'e'", "'10'", "'1'", "'zz'", "'a_'", "'a%'", "'_b'"}
	fuzzTypes = []fuzzType{
		{sql: "int", values: []string{"0", "1", "2", "3", "5", "10", "-1", "-7", "2147483647"}},
		{sql: "bigint unsigned", values: []string{"0", "1", "2", "3", "10", "18446744073709551615"}},
		{sql: "decimal(6,2)", values: []string{"0.00", "1.00", "1.50", "2.25", "-3.10", "10.00", "9999.99"}},
		{sql: "varchar(10) character set utf8mb4 collate utf8mb4_bin", values: fuzzWords, text: true},
		{sql: "varchar(10) character set utf8mb4 collate utf8mb4_general_ci", values: fuzzWords, text: true, folds: true},
		{sql: "varchar(10) character set utf8mb4 collate utf8mb4_0900_ai_ci", values: fuzzWords[:len(fuzzWords)-3], text: true, folds: true},
		{sql: "varbinary(6)", values: []string{"''", "'a'", "'A'", "'ab'", "x'00'", "x'ff'", "x'ff00'", "'b'"}},
		{sql: "date", values: []string{"'2026-01-01'", "'2026-01-02'", "'1999-12-31'", "'2026-02-28'"}},
		{sql: "datetime", values: []string{"'2026-01-01 00:00:00'", "'2026-01-01 10:00:00'", "'1999-12-31 23:59:59'", "'2026-01-02 00:00:00'"}},
		{sql: "time", values: []string{"'00:00:00'", "'10:00:00'", "'10:00:01'", "'-01:00:00'", "'23:59:59'", "'100:00:00'"}},
		{sql: "enum('b','a','c')", values: []string{"'a'", "'b'", "'c'"}, unordered: true},
		{sql: "bit(4)", values: []string{"b'0'", "b'1'", "b'1010'", "b'1111'"}},
	}
)

type fuzzColumn struct {
	name string
	typ  *fuzzType
}

type fuzzTable struct {
	name    string
	columns []fuzzColumn
	setup   []string
}

// newFuzzTable makes up a table: its columns, keys and rows.
func newFuzzTable(r *rand.Rand, name string) *fuzzTable {
	t := &fuzzTable{name: name}
	var parts []string
	parts = append(parts, "id int not null")
	t.columns = append(t.columns, fuzzColumn{"id", &fuzzTypes[0]})
	for i := range 3 + r.IntN(4) {
		c := fuzzColumn{fmt.Sprintf("c%d", i), &fuzzTypes[r.IntN(len(fuzzTypes))]}
		t.columns = append(t.columns, c)
		parts = append(parts, c.name+" "+c.typ.sql)
	}
	if r.IntN(5) > 0 {
		parts = append(parts, "primary key (id)")
	}
	for i := range r.IntN(4) {
		var on []string
		for _, at := range r.Perm(len(t.columns))[:1+r.IntN(3)] {
			on = append(on, t.columns[at].name)
		}
		parts = append(parts, fmt.Sprintf("key k%d (%s)", i, strings.Join(on, ", ")))
	}
	t.setup = []string{fmt.Sprintf("create table %s (%s)", name, strings.Join(parts, ", "))}
	for id := range 5 + r.IntN(20) {
		row := []string{fmt.Sprint(id)}
		for _, c := range t.columns[1:] {
			row = append(row, orNull(r, pick(r, c.typ.values)))
		}
		t.setup = append(t.setup, fmt.Sprintf("insert into %s values (%s)", name, strings.Join(row, ", ")))
	}
	return t
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func orNull(r *rand.Rand, v string) string {
	if r.IntN(5) == 0 {
		return "null"
	}
	return v
}

// columnsLike returns the other columns of a column's type.
func columnsLike(of []fuzzRef, c fuzzRef) []fuzzRef {
	return slices.DeleteFunc(slices.Clone(of), func(o fuzzRef) bool { return o.typ != c.typ || o == c })
}

// A fuzzRef is a column as a statement names it.
type fuzzRef struct {
	name string
	typ  *fuzzType
}

func (t *fuzzTable) refs(alias string) (all []fuzzRef) {
	for _, c := range t.columns {
		all = append(all, fuzzRef{alias + "." + c.name, c.typ})
	}
	return all
}
