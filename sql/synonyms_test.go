package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
)

// TestSynonyms: older and shorter words for what there is, and reasons for what there is not.
func TestSynonyms(t *testing.T) {
	c := newInstance(t).client("")
	for _, q := range []string{"create database d", "use d", "create table t (id int primary key)", "lock table t write", "LOCK  TABLE t AS u READ LOCAL, t WRITE", "unlock table", "lock tables t read", "unlock tables"} {
		c.exec(q)
	}
	for _, q := range []string{
		"show create user root@localhost", "set password = 'x'", "set password = password('x')", "lock instance for backup", "unlock instance", "handler t open", "xa start 'x'", "check table t", "optimize table t", "repair table t", "checksum table t",
		"flush logs", "flush status", "flush hosts", "flush user_resources", "flush optimizer_costs", "flush slow logs", "flush local tables",
	} {
		c.wantCode(q, myerr.Unsupported.Number, "42000")
	}
	for _, q := range []string{"set password for root@localhost = 'x'", "SET PASSWORD FOR 'a'@'%' = PASSWORD('x')"} {
		if stmt, err := (parser{}).ParseSimple(q); err != nil || !strings.Contains(fmt.Sprintf("%T", stmt), "DDL") {
			t.Errorf("%s: %T, %v", q, stmt, err)
		}
	}
	for _, s := range []struct {
		text string
		code int
	}{{"set global sql_select_limit_x = 1", 1193}, {"set global timestamp = 1", 1228}, {"set session max_connections = 4", 1229}, {"set global max_connections = 1.5", 1232}} {
		if _, _, err := c.run(s.text); err == nil || s.code != 1193 && myerr.Of(err).Num != s.code {
			t.Errorf("%s: %v, want %d", s.text, err, s.code)
		}
	}
}
