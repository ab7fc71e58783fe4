package compat

import (
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// The parts that a CHANGE becomes need the privileges of ALTER TABLE.
func TestSplitChangesKeepPrivileges(t *testing.T) {
	stmt, err := sqlparser.Parse("ALTER TABLE t CHANGE a x INT, CHANGE b y INT")
	if err != nil {
		t.Fatal(err)
	}
	RenameLast(stmt)
	parts := stmt.(*sqlparser.AlterTable).Statements
	if len(parts) != 4 {
		t.Fatalf("%d parts, want 4", len(parts))
	}
	for i, p := range parts {
		if p.Auth.AuthType == "" {
			t.Errorf("part %d, %q, needs no privilege", i, p.ColumnAction)
		}
	}
}
