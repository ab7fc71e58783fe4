package compat

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// WithBinaryCollations gives columns with the attribute BINARY, as in CHAR(1) BINARY, the binary
// collation of their table's character set. go-mysql-server ignores BINARY if the column names no
// character set: 'a' and 'A' are then equal keys.
func WithBinaryCollations(stmt sqlparser.Statement) {
	switch n := stmt.(type) {
	case *sqlparser.DDL:
		withBinaryCollations(n)
	case *sqlparser.AlterTable:
		for _, d := range n.Statements {
			withBinaryCollations(d)
		}
	}
}

func withBinaryCollations(d *sqlparser.DDL) {
	if d.TableSpec == nil {
		return
	}
	for _, c := range d.TableSpec.Columns {
		if t := &c.Type; t.BinaryCollate && t.Charset == "" && t.Collate == "" {
			t.BinaryCollate, t.Collate = false, tableCharset(d.TableSpec)+"_bin"
		}
	}
}

// tableCharset returns the character set that a table's options name, or the default for new tables.
func tableCharset(t *sqlparser.TableSpec) string {
	for _, o := range t.TableOpts {
		switch strings.ToLower(o.Name) {
		case "character set", "charset":
			if set := strings.ToLower(o.Value); set != "utf8" {
				return set
			}
			return "utf8mb3"
		}
	}
	return "utf8mb4"
}
