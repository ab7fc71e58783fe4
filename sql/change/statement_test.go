package change

import (
	"context"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A session has the Statement of its running statement.
type session struct {
	gms.Session
	running Statement
}

func (s *session) Changing() *Statement { return &s.running }
func (s *session) Generated() bool      { return false }

func newSession() (*session, *gms.Context) {
	s := &session{Session: gms.NewBaseSession()}
	return s, gms.NewContext(context.Background(), gms.WithSession(s))
}

// call returns a call of one of the package's functions.
func call(t *testing.T, ctx *gms.Context, name string, args ...gms.Expression) (gms.Expression, error) {
	t.Helper()
	f, ok := Function(ctx, name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return f.NewInstance(ctx, args)
}

// The functions that carry values exist where an INSERT is planned, and in its statement only.
func TestCarryNeedsAnInsert(t *testing.T) {
	one := expression.NewLiteral(int64(1), types.Int64)
	s, ctx := newSession()
	if _, err := call(t, ctx, carryName, one, one); !gms.ErrFunctionNotFound.Is(err) {
		t.Errorf("without an INSERT: %v", err)
	}
	s.running.load = &load{}
	for _, name := range []string{carryName, carriedName} { // the first carries one value, the second reads number 0
		arg := []gms.Expression{expression.NewLiteral(int64(0), types.Int64), one}
		if _, err := call(t, ctx, name, arg...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.running = Statement{}
	if _, err := call(t, ctx, carriedName, one); !gms.ErrFunctionNotFound.Is(err) {
		t.Errorf("in the next statement: %v", err)
	}
	if _, err := call(t, gms.NewEmptyContext(), carryName, one, one); !gms.ErrFunctionNotFound.Is(err) {
		t.Errorf("in a session of go-mysql-server's own: %v", err)
	}
}

// LAST_INSERT_ID(n) is told of the statement that runs it, also if another one has planned it, as
// the plan of a compiled statement is.
func TestToldID(t *testing.T) {
	planner, ctx := newSession()
	x, err := call(t, ctx, "last_insert_id", expression.NewLiteral(int64(7), types.Int64))
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := newSession()
	if v, err := x.Eval(ctx, nil); err != nil || v != uint64(7) {
		t.Fatalf("%v, %v", v, err)
	}
	if !s.running.ToldID() || planner.running.ToldID() {
		t.Errorf("told of the statement: %v, of the one that planned it: %v", s.running.ToldID(), planner.running.ToldID())
	}
}
