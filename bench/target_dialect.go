package bench

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// A dialect is a kind of server that a DSN leads to. Workloads are written in the SQL
// of MySQL; where a server has other words, its dialect finds them.
type dialect struct {
	// open opens the database at a DSN, to which nobody has to listen.
	open func(dsn string) (*sql.DB, error)
	// version is a query for what the server is.
	version string
	// settle, if not empty, is what a server is told between loading and measuring.
	settle string
}

var mySQL = &dialect{
	open:    func(dsn string) (*sql.DB, error) { return sql.Open("mysql", dsn) },
	version: "SELECT VERSION()",
}

// schemeOf finds the scheme of a DSN that is a URL, which MySQL's are not.
var schemeOf = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*)://`)

// dialectOf returns the SQL dialect of a DSN's server.
func dialectOf(dsn string) (*dialect, error) {
	scheme := schemeOf.FindStringSubmatch(dsn)
	switch {
	case scheme == nil:
		return mySQL, nil
	case scheme[1] == "postgres" || scheme[1] == "postgresql":
		return postgreSQL, nil
	}
	return nil, fmt.Errorf("%w: a DSN of scheme %q; it is user:password@tcp(host:port)/ of a MySQL server, or postgres://user:password@host:port/database",
		ErrTarget, strings.ToLower(scheme[1]))
}
