package compat_test

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/sql/sqltest"
)

// TestChecksOfBodies: go-mysql-server accepted undefined and duplicate labels, and SQLSTATEs that are
// none.
func TestChecksOfBodies(t *testing.T) {
	for body, want := range map[string]int{
		"begin leave l; end": 1308, "begin iterate l; end": 1308, "l: begin iterate l; end": 1308, "l: loop leave m; end loop": 1308,
		"l: begin declare exit handler for sqlexception leave l; select 1; end": 1308,
		"l: loop l: loop leave l; end loop; end loop":                           1309, "l: begin L: while 1 do leave l; end while; end": 1309,
		"begin if 1 then leave x; end if; end": 1308, "begin case 1 when 1 then iterate x; end case; end": 1308,
		"begin signal sqlstate '4500'; end": 1407, "begin signal sqlstate '00000'; end": 1407, "begin signal sqlstate '45ab0'; end": 1407,
		"begin declare c condition for sqlstate 'abc'; end": 1407, "begin declare exit handler for sqlstate '00001' select 1; end": 1407,
		"l: begin leave L; end": 0, "l: loop begin iterate l; end; leave l; end loop": 0, "begin l: loop leave l; end loop; l: loop leave l; end loop; end": 0,
		"begin declare exit handler for sqlstate '23000', not found l: loop leave l; end loop; signal sqlstate '45000'; end": 0,
		"begin declare c condition for sqlstate 'HY000'; declare continue handler for c, 1062 begin end; signal c; end":      0,
	} {
		for _, create := range []string{"create procedure p() ", "create trigger g before insert on t for each row "} {
			c := sqltest.New(t, "create table t (a int)")
			got := c.Result(create + body)
			if want == 0 && got == "ok" || want != 0 && got == fmt.Sprintf("error %d", want) {
				continue
			}
			if want != 0 || create[7] == 'p' {
				t.Errorf("%s%s: %s, want error %d", create, body, got, want)
			}
		}
	}
}
