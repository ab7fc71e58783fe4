package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// The plans of statements, as EXPLAIN FORMAT=TREE shows them. Directives: exec runs statements, plan
// shows one's plan.
func TestEnginePlans(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	datadriven.RunTest(t, "exec/testdata/plans", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "exec":
			for _, q := range strings.Split(d.Input, ";") {
				c.exec(q)
			}
			return ""
		case "plan":
			_, rows, err := c.run("EXPLAIN FORMAT=TREE " + strings.ReplaceAll(d.Input, "\n", " "))
			if err != nil {
				return err.Error() + "\n"
			}
			var b strings.Builder
			for _, r := range rows {
				fmt.Fprintln(&b, r[0])
			}
			text, isOurs := strings.CutPrefix(b.String(), "run by sql/exec, not by go-mysql-server:\n")
			if !isOurs {
				return "go-mysql-server\n"
			}
			return text
		}
		t.Fatalf("%s: no directive %s", d.Pos, d.Cmd)
		return ""
	})
}
