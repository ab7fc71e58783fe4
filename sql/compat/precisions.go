package compat

import (
	"strconv"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server panics at CAST to a DATETIME with more than six digits of the second, and takes
// such a TIME for one of six.

// precisionMax is the greatest number of digits that a second of a type has.
const precisionMax = 6

// CheckPrecisions refuses casts to times with more digits of the second than there are.
func CheckPrecisions(query string, stmt sqlparser.Statement) error {
	if stmt == nil || !ContainsFold(query, "cast") && !ContainsFold(query, "convert") || !ContainsFold(query, "time") {
		return nil
	}
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		c, ok := n.(*sqlparser.ConvertExpr)
		if !ok || c.Type == nil || c.Type.Length == nil || !ContainsFold(c.Type.Type, "time") {
			return true, nil
		}
		if digits, err := strconv.Atoi(string(c.Type.Length.Val)); err != nil || digits > precisionMax {
			return false, myerr.BigPrecision.New(string(c.Type.Length.Val), sqlparser.String(c.Expr), precisionMax)
		}
		return true, nil
	}, planned(stmt))
}
