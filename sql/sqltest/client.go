// Package sqltest runs SQL on databases in memory, for the tests of packages whose work shows only
// in the results that a client receives.
package sqltest

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql"
)

// patience is longer than any statement of a test takes.
const patience = 20 * time.Second

// A Database is empty at first, and is gone after the test.
type Database struct {
	t  testing.TB
	db *stdsql.DB
}

// Open returns a new database.
func Open(t testing.TB) *Database {
	t.Helper()
	db, err := stdsql.Open(farmsql.DriverName, ":memory:?workers=1&regionsize=8MiB&logsize=1MiB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Database{t, db}
}

// A Client is one connection to a Database.
type Client struct {
	t    testing.TB
	conn *stdsql.Conn
}

// Client returns a new connection, which uses no schema yet.
func (d *Database) Client() *Client {
	d.t.Helper()
	conn, err := d.db.Conn(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return &Client{d.t, conn}
}

// New returns a client of a new database, after statements that must succeed. It uses a schema d.
func New(t testing.TB, statements ...string) *Client {
	t.Helper()
	c := Open(t).Client()
	c.Exec("create database d", "use d")
	c.Exec(statements...)
	return c
}

// Exec runs statements that must succeed.
func (c *Client) Exec(statements ...string) {
	c.t.Helper()
	for _, s := range statements {
		if _, err := c.query(s); err != nil {
			c.t.Fatalf("%s: %v", s, err)
		}
	}
}

// Result runs a statement, and returns what the client receives: a line for each row, "ok" if the
// statement returns no columns, or the number of its error.
func (c *Client) Result(statement string) string {
	c.t.Helper()
	told, err := c.query(statement)
	var e *mysql.MySQLError
	switch {
	case errors.As(err, &e):
		return fmt.Sprintf("error %d", e.Number)
	case err != nil:
		c.t.Fatalf("%s: %v", statement, err)
	}
	return told
}

// query runs a statement. One that hangs is an error.
func (c *Client) query(statement string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rows, err := c.conn.QueryContext(ctx, statement)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // has an error only if reading has one
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "ok", rows.Err()
	}
	var b strings.Builder
	values, into := make([]stdsql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		writeLine(&b, values)
	}
	return b.String(), rows.Err()
}

func writeLine(b *strings.Builder, values []stdsql.NullString) {
	for i, v := range values {
		if i > 0 {
			b.WriteString(" | ")
		}
		if !v.Valid {
			v.String = "NULL"
		}
		b.WriteString(v.String)
	}
	b.WriteByte('\n')
}

// Check runs a test with a new database, in which the statements of setup must succeed; want is
// the Result of query after them.
func Check(t *testing.T, setup, query, want string) {
	t.Helper()
	t.Run(query, func(t *testing.T) {
		if got := New(t, Statements(setup)...).Result(query); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Statements splits a text at its semicolons.
func Statements(text string) (all []string) {
	for _, s := range strings.Split(text, ";") {
		if strings.TrimSpace(s) != "" {
			all = append(all, s)
		}
	}
	return all
}
