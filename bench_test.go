package farmsql

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkSQL measures statements on one embedded connection: MySQL's protocol
// over a pipe, go-mysql-server, and one machine.
func BenchmarkSQL(b *testing.B) {
	db, err := Open(Config{Volatile: true, RegionSize: 64 * MiB, LogSize: 4 * MiB})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	pool := db.SQL()
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprintf("(%d, %d, 'row %d')", i, i%100, i))
	}
	for _, q := range []string{
		"create database b", "create table b.t (id int primary key, k int not null, pad varchar(60), key (k))",
		"create table b.n (id bigint primary key auto_increment, k int)",
		"insert into b.t values " + strings.Join(values, ","),
	} {
		if _, err := pool.Exec(q); err != nil {
			b.Fatal(err)
		}
	}
	for _, bench := range []struct {
		name, query string
		rows        bool
		arg         func(i int) []any
	}{
		{"PointSelect", "select pad from b.t where id = ?", true, func(i int) []any { return []any{i % 1000} }},
		{"RangeSelect", "select pad from b.t where id between ? and ?", true, func(i int) []any { return []any{i % 900, i%900 + 99} }},
		{"Update", "update b.t set k = k + 1 where id = ?", false, func(i int) []any { return []any{i % 1000} }},
		{"Insert", "insert into b.n (k) values (?)", false, func(i int) []any { return []any{i} }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			st, err := pool.Prepare(bench.query)
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !bench.rows {
					if _, err := st.Exec(bench.arg(i)...); err != nil {
						b.Fatal(err)
					}
					continue
				}
				rows, err := st.Query(bench.arg(i)...)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for rows.Next() {
					n++
				}
				if err := rows.Close(); err != nil || n == 0 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
