package compat

import (
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
)

// This file shows columns as MySQL does, where go-mysql-server differs.

// Extra returns the column Extra of SHOW COLUMNS and information_schema. Programs that dump
// tables use it to find columns that must not be inserted.
func Extra(c *catalog.Column) string {
	switch {
	case c.AutoIncrement:
		return "auto_increment"
	case c.Generated != "" && c.Virtual:
		return "VIRTUAL GENERATED"
	case c.Generated != "":
		return "STORED GENERATED"
	}
	var words []string
	if !isLiteral(c.Default) {
		words = append(words, "DEFAULT_GENERATED")
	}
	if c.OnUpdate != "" {
		words = append(words, "on update "+c.OnUpdate)
	}
	return strings.Join(words, " ")
}

// isLiteral reports whether a default is a literal. Expressions are in parentheses, except
// CURRENT_TIMESTAMP.
func isLiteral(text string) bool {
	return !strings.HasPrefix(text, "(") && !strings.HasPrefix(text, "CURRENT_TIMESTAMP")
}

// A shownType is a type whose text differs from go-mysql-server's.
type shownType struct {
	anyType
	text string
}

// anyType names gms.Type so that the embedded field does not hide the method Type.
type anyType = gms.Type

// String implements fmt.Stringer.
func (t shownType) String() string { return t.text }

// Shown returns a type with the text that MySQL shows, in a table with this default
// collation.
func Shown(t gms.Type, table gms.CollationID) gms.Type {
	if collated, ok := t.(gms.TypeWithCollation); ok {
		return shownType{t, TypeText(collated, table)}
	}
	return t
}

// TypeText returns the text of a type in a table with this default collation. Backslashes
// in the values of ENUM and SET are doubled, as in strings.
func TypeText(t gms.TypeWithCollation, table gms.CollationID) string {
	text := t.StringWithTableCollation(table)
	switch t.(type) {
	case gms.EnumType, gms.SetType:
		return strings.ReplaceAll(text, `\`, `\\`)
	}
	return text
}

// MemberText returns the default of an ENUM or SET by its names. go-mysql-server shows the
// number of the value, in quotes.
func MemberText(t gms.Type, quoted string) (string, bool) {
	number, err := strconv.ParseUint(strings.Trim(quoted, "'"), 10, 64)
	if err != nil {
		return "", false // NULL or an expression
	}
	switch t := t.(type) {
	case gms.EnumType:
		name, ok := t.At(int(number))
		return quoteText(name), ok
	case gms.SetType:
		names, err := t.BitsToString(number)
		return quoteText(names), err == nil
	}
	return "", false
}

// quoteText quotes a string for MySQL's parser.
func quoteText(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}
