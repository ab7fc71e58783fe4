package compat

import (
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's parser does not know all of MySQL's formats of EXPLAIN, and treats any format
// as its own.

// explainFormat matches the beginning of an EXPLAIN with a format, which the parser may not know.
var explainFormat = regexp.MustCompile(`(?is)^(\s*(?:EXPLAIN|DESCRIBE|DESC)\s+(?:ANALYZE\s+)?)FORMAT\s*=\s*['"]?(\w+)['"]?`)

// ExplainedText returns the statement that an EXPLAIN with a format explains.
func ExplainedText(query string) string {
	return strings.TrimSpace(explainFormat.ReplaceAllString(gms.RemoveSpaceAndDelimiter(query, ';'), ""))
}

// CheckFormat refuses unknown formats of EXPLAIN, and JSON for EXPLAIN ANALYZE.
func CheckFormat(query string) error {
	parts := explainFormat.FindStringSubmatch(query)
	if parts == nil {
		return nil
	}
	switch format := strings.ToLower(parts[2]); format {
	case "traditional", "tree", "debug", "estimates", "debug_estimates":
		return nil
	case "json":
		if !strings.Contains(strings.ToUpper(parts[1]), "ANALYZE") {
			return nil
		}
		return myerr.NotSupported("'EXPLAIN ANALYZE with FORMAT=JSON': use EXPLAIN ANALYZE")
	default:
		return myerr.UnknownFormat.New(parts[2])
	}
}

// KnownToParser rewrites formats of EXPLAIN that the parser does not know: it drops FORMAT=TREE
// from EXPLAIN ANALYZE, and replaces JSON by jsonFormat. It reports whether it has rewritten one.
func KnownToParser(query string) (string, bool) {
	parts := explainFormat.FindStringSubmatch(query)
	switch {
	case parts == nil:
		return query, false
	case strings.EqualFold(parts[2], "json"):
		return explainFormat.ReplaceAllString(query, "${1}FORMAT="+jsonFormat), true
	case strings.EqualFold(parts[2], "tree") && strings.Contains(strings.ToUpper(parts[1]), "ANALYZE"):
		return explainFormat.ReplaceAllString(query, "$1"), true
	}
	return query, false
}

// jsonFormat stands for JSON until the statement is parsed.
const jsonFormat = "farmsql_json"

// AsFormat removes FORMAT=TRADITIONAL, the default, from an EXPLAIN, and marks FORMAT=JSON by
// two options that no client can combine.
func AsFormat(e *sqlparser.Explain) {
	switch {
	case strings.EqualFold(e.ExplainFormat, "traditional"):
		e.ExplainFormat = ""
	case e.ExplainFormat == jsonFormat:
		e.ExplainFormat, e.Analyze = "debug", true
	}
}

// IsJSONFormat reports whether an EXPLAIN asks for JSON: it has the two options that AsFormat
// sets.
func IsJSONFormat(o gms.DescribeOptions) bool { return o.Analyze && o.Debug }
