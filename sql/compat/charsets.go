package compat

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// CheckCharset returns an error for a character set of which go-mysql-server knows only the name,
// such as latin2: a conversion to it panics. An unknown name is left to go-mysql-server.
func CheckCharset(name string) error {
	set, err := gms.ParseCharacterSet(name)
	if err != nil || set == gms.CharacterSet_Unspecified || set.Encoder() != nil {
		return nil
	}
	return myerr.UnknownCharset.New(name)
}

// CheckCollation is CheckCharset for the character set of a collation.
func CheckCollation(name string) error {
	c, err := gms.ParseCollation("", name, false)
	if err != nil || c == gms.Collation_Unspecified {
		return nil
	}
	return CheckCharset(c.CharacterSet().Name())
}

// CheckConversions checks the character sets of CONVERT(... USING ...) and of databases.
func CheckConversions(query string, stmt sqlparser.Statement) error {
	if d, ok := stmt.(*sqlparser.DBDDL); ok {
		for _, c := range d.CharsetCollate {
			check := CheckCharset
			if strings.EqualFold(c.Type, "COLLATE") {
				check = CheckCollation
			}
			if err := check(c.Value); err != nil {
				return err
			}
		}
		return nil
	}
	if !ContainsFold(query, "using") || !ContainsFold(query, "convert") {
		return nil
	}
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if c, ok := n.(*sqlparser.ConvertUsingExpr); ok {
			return true, CheckCharset(c.Type)
		}
		return true, nil
	}, stmt)
}
