package compat

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's parser drops the COLLATE of SET NAMES.

// CheckNames refuses SET NAMES utf8mb4 with a collation of another character set: the connection's
// literals would then have that character set.
func CheckNames(query string, stmt sqlparser.Statement) error {
	if set, ok := stmt.(*sqlparser.Set); !ok || !setsNames(set) {
		return nil
	}
	charset, collation := namesOf(query)
	if collation == "" || !strings.EqualFold(charset, gms.CharacterSet_utf8mb4.Name()) {
		return nil
	}
	c, err := gms.ParseCollation("", collation, false)
	if err != nil {
		return nil // the code that sets the collation refuses it
	}
	if c.CharacterSet() != gms.CharacterSet_utf8mb4 {
		return myerr.CollationOfOther.New(collation, charset)
	}
	return nil
}

// setsNames reports whether a SET has NAMES.
func setsNames(set *sqlparser.Set) bool {
	return slices.ContainsFunc(set.Exprs, func(e *sqlparser.SetVarExpr) bool { return strings.EqualFold(e.Name.String(), "names") })
}

// SetNames makes SET NAMES utf8mb4 COLLATE c set the connection's collation to c. With another
// character set, COLLATE has no effect: literals would have that character set, but here all text
// is in UTF-8.
func SetNames(query string, stmt sqlparser.Statement) {
	set, ok := stmt.(*sqlparser.Set)
	if !ok || !ContainsFold(query, "names") {
		return
	}
	for i, e := range set.Exprs {
		if !strings.EqualFold(e.Name.String(), "names") {
			continue
		}
		charset, collation := namesOf(query)
		if collation == "" || !strings.EqualFold(charset, gms.CharacterSet_utf8mb4.Name()) {
			return
		}
		all := append(sqlparser.SetVarExprs{}, set.Exprs[:i+1]...)
		all = append(all, &sqlparser.SetVarExpr{Name: sqlparser.NewColName("collation_connection"), Expr: sqlparser.NewStrVal([]byte(collation))})
		set.Exprs = append(all, set.Exprs[i+1:]...)
		return
	}
}

// namesOf returns the character set and the collation of a statement's SET NAMES; the collation is
// empty if the statement has none.
func namesOf(query string) (charset, collation string) {
	s := NewTokens(query, sqlparser.ParserOptions{})
	for s.Next() != sqlparser.NAMES {
		if s.IsOver() {
			return "", ""
		}
	}
	s.Next()
	charset = string(s.value)
	if s.Next() == sqlparser.COLLATE {
		s.Next()
		collation = string(s.value)
	}
	return charset, collation
}
