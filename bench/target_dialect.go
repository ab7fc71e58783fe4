package bench

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// A dialect is a kind of server behind a DSN. Workloads are written in MySQL's SQL; a
// dialect translates it if its server needs other words.
type dialect struct {
	// open opens the database at a DSN, even if no server listens there.
	open func(dsn string) (*sql.DB, error)
	// version is a query for the server's version.
	version string
	// settle, if not empty, is a statement to run between loading and measuring.
	settle string
}

var mySQL = &dialect{
	open:    func(dsn string) (*sql.DB, error) { return sql.Open("mysql", dsn) },
	version: "SELECT VERSION()",
}

// schemeOf matches the scheme of a DSN that is a URL; MySQL's are not URLs.
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
