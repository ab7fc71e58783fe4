package sql

import (
	"context"
	"errors"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// doomedClient returns a client whose running statement, a transaction by itself, has read a row
// that another client has changed since.
func doomedClient(t *testing.T) (c *client, ctx *gms.Context, cancel context.CancelCauseFunc) {
	in := newInstance(t)
	c = in.client("d")
	c.exec("CREATE DATABASE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	c.exec("INSERT INTO t VALUES (1, 1)")
	within, cancel := context.WithCancelCause(context.Background())
	ctx = in.e.NewContext(within, c.s)
	_, rows, _, err := in.e.GMS().Query(ctx, "SELECT v FROM t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rows.Next(ctx); err != nil {
		t.Fatal(err)
	}
	in.client("d").exec("UPDATE t SET v = 2")
	return c, ctx, cancel
}

// A statement that fails after a read that no longer holds has a conflict, although go-mysql-server
// ends the transaction before the listener asks: it drops the transaction, or commits it in a
// context that has ended.
func TestFailedAfterAReadThatDoesNotHold(t *testing.T) {
	failure := errors.New("made of what was read")
	for name, end := range map[string]func(*client, *gms.Context, context.CancelCauseFunc){
		"dropped": func(c *client, ctx *gms.Context, _ context.CancelCauseFunc) { ctx.SetTransaction(nil) },
		"broken": func(c *client, ctx *gms.Context, _ context.CancelCauseFunc) {
			tr := store.Current(ctx)
			_ = tr.Fail(failure)
			if err := c.s.CommitTransaction(ctx, tr); err != nil {
				t.Error(err)
			}
		},
		"context ended": func(c *client, ctx *gms.Context, cancel context.CancelCauseFunc) {
			cancel(failure)
			if err := c.s.CommitTransaction(ctx, store.Current(ctx)); err == nil {
				t.Error("committed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx, cancel := doomedClient(t)
			defer cancel(nil)
			end(c, ctx, cancel)
			if err := c.s.TakeCommitError(); !myerr.IsConflict(err) {
				t.Errorf("no conflict, but %v", err)
			}
			if c.s.GetTransaction() != nil {
				t.Error("the session still has its transaction")
			}
		})
	}
}

// The same read, if it holds, changes nothing about the failure.
func TestFailedAfterAReadThatHolds(t *testing.T) {
	in := newInstance(t)
	c := in.client("d")
	c.exec("CREATE DATABASE d")
	ctx := in.e.NewContext(context.Background(), c.s)
	store.Began(ctx)
	ctx.SetTransaction(nil)
	if err := c.s.TakeCommitError(); err != nil {
		t.Error(err)
	}
}
