package compat

import (
	"strconv"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server panics at a CAST to a DATETIME with more than six fractional digits. It treats
// such a TIME as one with six.

// precisionMax is the greatest number of fractional digits that a type can have.
const precisionMax = 6

// CheckPrecisions refuses casts to times with more fractional digits than precisionMax.
func CheckPrecisions(query string, stmt sqlparser.Statement) error {
	if stmt == nil || (!ContainsFold(query, "cast") && !ContainsFold(query, "convert")) || !ContainsFold(query, "time") {
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
