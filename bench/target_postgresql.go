package bench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgreSQL is PostgreSQL through pgx. A workload's database is a schema there.
// Without VACUUM ANALYZE it would plan without statistics of the loaded tables, and
// clean up after the load while it is measured.
var postgreSQL = &dialect{
	open:    openPostgreSQL,
	version: "SELECT 'PostgreSQL ' || current_setting('server_version')",
	settle:  "VACUUM ANALYZE",
}

func openPostgreSQL(dsn string) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(translator{stdlib.GetConnector(*cfg)}), nil
}

// A translator connects to a server, and translates statements from MySQL's SQL.
type translator struct{ driver.Connector }

// Connect implements driver.Connector.
func (t translator) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return translated{conn.(*stdlib.Conn)}, nil
}

// translated is a connection that translates statements; prepared ones once.
type translated struct{ *stdlib.Conn }

var (
	_ driver.ConnPrepareContext = translated{}
	_ driver.ExecerContext      = translated{}
	_ driver.QueryerContext     = translated{}
	_ driver.NamedValueChecker  = translated{}
)

// PrepareContext implements driver.ConnPrepareContext.
func (c translated) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.Conn.PrepareContext(ctx, inPostgreSQL(text))
}

// ExecContext implements driver.ExecerContext.
func (c translated) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, inPostgreSQL(text), args)
}

// QueryContext implements driver.QueryerContext.
func (c translated) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.QueryContext(ctx, inPostgreSQL(text), args)
}

// A wording is a pattern of MySQL's SQL, and PostgreSQL's replacement.
type wording struct {
	mySQL      *regexp.Regexp
	postgreSQL string
}

// Wordings for statements, and for CREATE TABLE. They cover exactly what workloads use.
var (
	statementWordings = []wording{
		{regexp.MustCompile(`^CREATE DATABASE (\w+)$`), "CREATE SCHEMA $1"},
		{regexp.MustCompile(`^DROP DATABASE IF EXISTS (\w+)$`), "DROP SCHEMA IF EXISTS $1 CASCADE"},
		{regexp.MustCompile(`^USE (\w+)$`), "SET search_path TO $1"},
		{regexp.MustCompile(` AS SIGNED\)`), " AS BIGINT)"},
	}
	tableWordings = []wording{
		{regexp.MustCompile(`\bINT UNSIGNED\b`), "BIGINT"}, // PostgreSQL's integers of 4 bytes are signed
		{regexp.MustCompile(`\bTINYINT\b`), "SMALLINT"},
		{regexp.MustCompile(`\bDATETIME\b`), "TIMESTAMP"},
		{regexp.MustCompile(`\b(VAR)?BINARY\(\d+\)`), "BYTEA"},
		{regexp.MustCompile(`\bCOLLATE utf8mb4_bin\b`), `COLLATE "C"`},
	}
	createTable = regexp.MustCompile(`^CREATE TABLE (\S+) `)
	// secondaryKey matches an index in CREATE TABLE: PostgreSQL needs a separate
	// statement for it.
	secondaryKey = regexp.MustCompile(`,\s*KEY (\w+) (\([^)]*\))`)
)

// inPostgreSQL translates a workload's statement to PostgreSQL's SQL.
func inPostgreSQL(text string) string {
	if table := createTable.FindStringSubmatch(text); table != nil {
		return tableInPostgreSQL(table[1], text)
	}
	return numberPlaceholders(reword(statementWordings, text))
}

// tableInPostgreSQL translates a CREATE TABLE. Secondary keys become statements of their own.
func tableInPostgreSQL(table, text string) string {
	indexes := ""
	for _, key := range secondaryKey.FindAllStringSubmatch(text, -1) {
		indexes += "; CREATE INDEX " + key[1] + " ON " + table + " " + key[2]
	}
	return reword(tableWordings, secondaryKey.ReplaceAllString(text, "")) + indexes
}

func reword(wordings []wording, text string) string {
	for _, w := range wordings {
		text = w.mySQL.ReplaceAllString(text, w.postgreSQL)
	}
	return text
}

// numberPlaceholders replaces question marks outside of strings by $1, $2 and so on.
func numberPlaceholders(text string) string {
	var b strings.Builder
	n, isString := 0, false
	for _, c := range []byte(text) {
		switch {
		case c == '\'':
			isString = !isString
		case c == '?' && !isString:
			n++
			b.WriteString("$" + strconv.Itoa(n))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}
