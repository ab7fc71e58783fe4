package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/sql/myerr"
)

// TestScripts runs the files of testdata. A directive is sql, with the session
// that runs the statements (session=a); restart closes the instance and opens
// it again; check walks all structures. Run with -rewrite to accept what comes
// out.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasPrefix(path, "testdata/fuzz") {
			return
		}
		s := newScript(t)
		datadriven.RunTest(t, path, s.run)
		for _, c := range s.sessions {
			c.s.Abort()
		}
		if err := s.in.check(); err != nil {
			t.Error(err)
		}
		s.in.close()
	})
}

type script struct {
	*testing.T
	in       *instance
	sessions map[string]*client
}

func newScript(t *testing.T) *script {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	s := &script{T: t, in: openInstance(t, cfg), sessions: make(map[string]*client)}
	s.session("main").exec("CREATE DATABASE test")
	s.session("main").exec("USE test")
	return s
}

func (s *script) session(name string) *client {
	c := s.sessions[name]
	if c == nil {
		c = s.in.client("test")
		s.sessions[name] = c
	}
	return c
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "sql":
		name := "main"
		if d.HasArg("session") {
			d.ScanArgs(t, "session", &name)
		}
		return s.statements(s.session(name), d.Input)
	case "restart":
		for _, c := range s.sessions {
			c.s.Abort()
		}
		s.in.close()
		s.in = openInstance(s.T, s.in.cfg)
		s.sessions = make(map[string]*client)
		return ""
	case "check":
		if err := s.in.check(); err != nil {
			return err.Error() + "\n"
		}
		return ""
	}
	d.Fatalf(t, "unknown directive %s", d.Cmd)
	return ""
}

// statements runs what stands between semicolons at the ends of lines.
func (s *script) statements(c *client, input string) string {
	var b strings.Builder
	for _, q := range strings.Split(input, ";\n") {
		q = strings.TrimSuffix(strings.TrimSpace(q), ";")
		if q != "" {
			b.WriteString(s.statement(c, q))
		}
	}
	return b.String()
}

func (s *script) statement(c *client, q string) string {
	forUpdate := strings.HasSuffix(strings.ToUpper(q), "FOR UPDATE")
	c.s.SetForUpdate(forUpdate)
	defer c.s.SetForUpdate(false)
	explicit := c.s.Explicit()
	for range 10 {
		schema, rows, err := c.run(q)
		if err == nil {
			err = c.s.TakeCommitError()
		}
		if err == nil && c.s.Explicit() {
			err = c.s.Validate()
		}
		if myerr.IsConflict(err) && !explicit {
			continue
		}
		if err != nil {
			e := myerr.Of(err)
			return fmt.Sprintf("error %d (%s): %s\n", e.Num, e.State, e.Message)
		}
		return s.result(c, schema, rows)
	}
	return "error: conflict again and again\n"
}

func (s *script) result(c *client, schema gms.Schema, rows []gms.Row) string {
	if len(rows) == 1 && len(rows[0]) == 1 {
		if r, ok := rows[0][0].(types.OkResult); ok {
			return okText(r)
		}
	}
	if len(rows) == 0 && len(schema) == 0 {
		return "ok\n"
	}
	if len(rows) == 0 {
		return "empty\n"
	}
	return c.show(schema, rows)
}

func okText(r types.OkResult) string {
	text := "ok"
	if r.RowsAffected > 0 {
		text += fmt.Sprintf(", %d rows", r.RowsAffected)
	}
	if r.InsertID > 0 {
		text += fmt.Sprintf(", id %d", r.InsertID)
	}
	if r.Info != nil {
		text += ", " + r.Info.String()
	}
	return text + "\n"
}
