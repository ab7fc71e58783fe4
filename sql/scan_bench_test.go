package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/sql/store"
)

// BenchmarkScans reads many rows with a statement: what a row costs.
func BenchmarkScans(b *testing.B) {
	in := openWith(b, farm.Config{RegionBytes: 64 << 20, LogBytes: 8 << 20}, Options{Memory: store.NewMemory(clock.System{}, 0, 8<<30)})
	defer in.close()
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, owner BIGINT NOT NULL, status ENUM('new','paid','sent') NOT NULL, name VARCHAR(80) NOT NULL, " +
		"total DECIMAL(10,2) NOT NULL, quantity INT NOT NULL, due DATE NOT NULL, created DATETIME NOT NULL, note VARCHAR(200) NOT NULL, KEY (owner), KEY (name))")
	const rows = 20_000
	for i := 0; i < rows; i += 100 {
		values := make([]string, 100)
		for j := range values {
			n := (i + j) * 7919 % rows
			values[j] = fmt.Sprintf("(%d, 'paid', 'name %d', %d.50, %d, '2024-01-02', '2024-01-02 03:04:05', 'a note of some length for order %d')", n/10, n, n%500, n%10, n)
		}
		c.exec("INSERT INTO t (owner, status, name, total, quantity, due, created, note) VALUES " + strings.Join(values, ", "))
	}
	for _, s := range []struct{ name, query string }{
		{"filter", "SELECT COUNT(*) FROM t WHERE quantity = 3 AND total < 100"},
		{"number-of-text", "SELECT id FROM t WHERE name = 123"},
		{"count", "SELECT COUNT(*) FROM t"},
		{"count-1000", "SELECT COUNT(*) FROM t WHERE id BETWEEN 2000 AND 2999"},
		{"sum-1000", "SELECT SUM(quantity) FROM t WHERE id BETWEEN 2000 AND 2999"},
		{"offset", "SELECT id, name FROM t ORDER BY id LIMIT 20 OFFSET 1000"},
		{"all-100", "SELECT * FROM t WHERE id > 500 ORDER BY id LIMIT 100"},
		{"group", "SELECT quantity, COUNT(*) FROM t WHERE id BETWEEN 2000 AND 2999 GROUP BY quantity"},
		{"owners", "SELECT * FROM t WHERE owner IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)"},
		{"max", "SELECT MAX(id) FROM t"},
	} {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			defer cputime.Report(b)()
			for b.Loop() {
				if err := c.execute(s.query); err != nil {
					b.Fatal(err)
				}
				c.s.Settle()
			}
		})
	}
}
