package wire

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/clock"
)

// A listing is a process list with one connection, number 7.
type listing struct {
	*processList
	session *gms.BaseSession
	lastPid uint64
}

func newListing() *listing {
	l := &listing{processList: &processList{clock: &clock.System{}, log: slog.New(slog.DiscardHandler)}, session: gms.NewBaseSessionWithClientServer("", gms.Client{User: "u", Address: "h"}, 7)}
	l.AddConnection(7, "h:1")
	return l
}

func (l *listing) context() *gms.Context {
	l.lastPid++
	return gms.NewContext(context.Background(), gms.WithSession(l.session), gms.WithPid(l.lastPid))
}

// shows checks what the list shows of the connection.
func (l *listing) shows(t *testing.T, command gms.ProcessCommand, query, database string) {
	t.Helper()
	all := l.Processes()
	if len(all) != 1 || all[0].Connection != 7 || all[0].Command != command || all[0].Query != query || all[0].Database != database {
		t.Errorf("the list has %+v; want %s %q in %q", all, command, query, database)
	}
}

// TestProcesses: the list shows what a connection does, and in which database, from its greeting to its end.
func TestProcesses(t *testing.T) {
	l := newListing()
	l.shows(t, gms.ProcessCommandConnect, "", "")
	l.ConnectionReady(l.session)
	l.shows(t, gms.ProcessCommandSleep, "", "")
	if user := l.Processes()[0].User; user != "u" {
		t.Errorf("the user is %q", user)
	}
	l.session.SetCurrentDatabase("d")
	ctx, err := l.BeginQuery(l.context(), "USE e")
	if err != nil {
		t.Fatal(err)
	}
	l.shows(t, gms.ProcessCommandQuery, "USE e", "d")
	l.session.SetCurrentDatabase("e")
	l.EndQuery(ctx)
	l.shows(t, gms.ProcessCommandSleep, "", "e")
	if ctx.Err() == nil {
		t.Error("a statement has ended, and its context has not")
	}
	l.RemoveConnection(7)
	if all := l.Processes(); len(all) != 0 {
		t.Errorf("a connection has ended, and the list has %v", all)
	}
	l.RemoveConnection(7)
	if _, err := l.BeginQuery(l.context(), "SELECT 1"); !errors.Is(err, errNoProcess) {
		t.Errorf("a statement of no connection: %v", err)
	}
	if _, err := l.BeginOperation(l.context()); !errors.Is(err, errNoProcess) {
		t.Errorf("an operation of no connection: %v", err)
	}
	l.EndQuery(ctx)
	l.EndOperation(ctx)
}

// TestKillEndsWhatRuns: KILL ends the statement or operation that runs, and no later one. A statement that has ended
// does not end a later one.
func TestKillEndsWhatRuns(t *testing.T) {
	l := newListing()
	l.ConnectionReady(l.session)
	l.Kill(7)
	l.Kill(8)
	first, err := l.BeginQuery(l.context(), "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Err() != nil {
		t.Error("a KILL has ended a statement that began after it")
	}
	l.Kill(7)
	if !errors.Is(first.Err(), context.Canceled) {
		t.Errorf("a statement that was killed: %v", first.Err())
	}
	if _, err := l.BeginOperation(l.context()); err == nil {
		t.Error("an operation has begun while a statement runs")
	}
	l.EndQuery(first)
	second, err := l.BeginQuery(l.context(), "SELECT 2")
	if err != nil {
		t.Fatal(err)
	}
	l.EndQuery(first) // as go-mysql-server does, which ends statements twice
	l.shows(t, gms.ProcessCommandQuery, "SELECT 2", "")
	if second.Err() != nil {
		t.Error("the end of a statement has ended the next")
	}
	l.EndQuery(second)

	operation, err := l.BeginOperation(l.context())
	if err != nil {
		t.Fatal(err)
	}
	l.shows(t, gms.ProcessCommandSleep, "", "")
	l.ConnectionReady(l.session) // as COM_INIT_DB does, which is an operation
	l.Kill(7)
	if operation.Err() == nil {
		t.Error("KILL did not end an operation")
	}
	l.EndOperation(operation)
	l.EndOperation(operation)

	last, err := l.BeginQuery(l.context(), "SELECT 3")
	if err != nil {
		t.Fatal(err)
	}
	l.RemoveConnection(7)
	if last.Err() == nil {
		t.Error("the statement of a connection that has ended goes on")
	}
}

// TestInterpreted: the statements of procedures are part of the statement that calls them.
func TestInterpreted(t *testing.T) {
	l := newListing()
	l.ConnectionReady(l.session)
	_, err := gms.RunInterpreted(l.context(), func(ctx *gms.Context) (any, error) {
		for _, begin := range []func() (*gms.Context, error){
			func() (*gms.Context, error) { return l.BeginQuery(ctx, "SELECT 1") },
			func() (*gms.Context, error) { return l.BeginOperation(ctx) },
		} {
			if same, err := begin(); same != ctx || err != nil {
				t.Errorf("it has begun: %v", err)
			}
			l.shows(t, gms.ProcessCommandSleep, "", "")
		}
		l.EndQuery(ctx)
		l.EndOperation(ctx)
		return nil, ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}
