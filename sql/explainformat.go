package sql

import (
	"regexp"
	"strings"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// explainFormat finds the format of an EXPLAIN that the parser may not know.
var explainFormat = regexp.MustCompile(`(?is)^(\s*(?:EXPLAIN|DESCRIBE|DESC)\s+(?:ANALYZE\s+)?)FORMAT\s*=\s*['"]?(\w+)['"]?`)

// erUnknownExplainFormat is MySQL's number for a format of EXPLAIN that does not exist.
const erUnknownExplainFormat = 1791

// knownFormat refuses the formats of EXPLAIN that there are not.
func knownFormat(query string) error {
	parts := explainFormat.FindStringSubmatch(query)
	if parts == nil {
		return nil
	}
	switch format := strings.ToLower(parts[2]); format {
	case "traditional", "tree", "debug", "estimates", "debug_estimates":
		return nil
	case "json":
		return mysql.NewSQLError(mysql.ERNotSupportedYet, "42000",
			"This version of farmsql doesn't yet support 'EXPLAIN FORMAT=JSON': use EXPLAIN, EXPLAIN FORMAT=TREE or EXPLAIN ANALYZE")
	default:
		return mysql.NewSQLError(erUnknownExplainFormat, "HY000", "Unknown EXPLAIN format name: '%s'; there are TRADITIONAL and TREE", parts[2])
	}
}

// withoutFormat is EXPLAIN ANALYZE FORMAT=TREE as the parser knows it.
func withoutFormat(query string) (string, bool) {
	parts := explainFormat.FindStringSubmatch(query)
	if parts == nil || !strings.EqualFold(parts[2], "tree") || !strings.Contains(strings.ToUpper(parts[1]), "ANALYZE") {
		return query, false
	}
	return explainFormat.ReplaceAllString(query, "$1"), true
}

// traditional takes the format off that EXPLAIN has without one.
func traditional(e *sqlparser.Explain) {
	if strings.EqualFold(e.ExplainFormat, "traditional") {
		e.ExplainFormat = ""
	}
}
