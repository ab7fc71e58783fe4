package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
)

// A processList records what each connection does: SHOW PROCESSLIST reads it, and KILL ends statements by it.
// go-mysql-server's own list has one lock for all connections, and four maps that each statement changes. A processList
// does not count the partitions that a statement has read, since each table has one.
//
// A processList is safe for concurrent use.
type processList struct {
	gms.EmptyProcessList // for the progress of tables
	clock                clock.Clock
	log                  *slog.Logger
	byConnection         sync.Map // connection id -> *process
}

var _ gms.ProcessList = (*processList)(nil)

// A process is what one connection does. Its connection's goroutine changes it.
type process struct {
	lockrank.Mutex[lockrank.Leaf]
	shown gms.Process // without Progress
}

var errNoProcess = errors.New("wire: the connection is not in the process list")

func (l *processList) find(id uint32) *process {
	p, _ := l.byConnection.Load(id)
	found, _ := p.(*process)
	return found
}

// Processes implements gms.ProcessList.
func (l *processList) Processes() []gms.Process {
	var all []gms.Process
	l.byConnection.Range(func(_, p any) bool {
		all = append(all, p.(*process).show())
		return true
	})
	return all
}

func (p *process) show() gms.Process {
	p.Lock()
	defer p.Unlock()
	return p.shown
}

// AddConnection implements gms.ProcessList, for a client that has not logged in.
func (l *processList) AddConnection(id uint32, address string) {
	l.byConnection.Store(id, &process{shown: gms.Process{
		Connection: id, Command: gms.ProcessCommandConnect, Host: address, User: "unauthenticated user", StartedAt: l.clock.Now(),
	}})
}

// ConnectionReady implements gms.ProcessList, for a client that has logged in or has another session.
func (l *processList) ConnectionReady(s gms.Session) {
	found, _ := l.byConnection.LoadOrStore(s.ID(), new(process))
	p := found.(*process)
	p.Lock()
	defer p.Unlock()
	p.shown = gms.Process{
		Connection: s.ID(), Command: gms.ProcessCommandSleep, Host: s.Client().Address, User: s.Client().User, StartedAt: l.clock.Now(), Database: s.GetCurrentDatabase(),
		Kill: p.shown.Kill, // kept, because a change of the current database is an operation, too
	}
}

// RemoveConnection implements gms.ProcessList.
func (l *processList) RemoveConnection(id uint32) {
	if p, ok := l.byConnection.LoadAndDelete(id); ok {
		p.(*process).kill()
	}
}

// kill ends what the connection does, and reports whether it does anything.
func (p *process) kill() bool {
	p.Lock()
	end := p.shown.Kill
	p.Unlock()
	if end != nil {
		end()
	}
	return end != nil
}

// Kill implements gms.ProcessList.
func (l *processList) Kill(id uint32) {
	if p := l.find(id); p != nil && p.kill() {
		l.log.Info("statement killed", "connection", id)
	}
}

// BeginQuery implements gms.ProcessList.
func (l *processList) BeginQuery(ctx *gms.Context, query string) (*gms.Context, error) {
	if ctx.IsInterpreted() {
		return ctx, nil
	}
	begun := ctx.WithContext(ctx.Context)
	if err := l.begin(begun, query, l.clock.Now()); err != nil {
		return nil, err
	}
	return begun, nil
}

// begin notes that a connection begins a statement. It changes ctx to one that KILL ends.
func (l *processList) begin(ctx *gms.Context, query string, now time.Time) error {
	p := l.find(ctx.Session.ID())
	if p == nil {
		return errNoProcess
	}
	var cancel context.CancelFunc
	ctx.Context, cancel = context.WithCancel(ctx.Context)
	p.Lock()
	defer p.Unlock()
	p.shown.Command, p.shown.Query, p.shown.QueryPid = gms.ProcessCommandQuery, query, ctx.Pid()
	p.shown.StartedAt, p.shown.Kill, p.shown.Database = now, cancel, ctx.Session.GetCurrentDatabase()
	return nil
}

// EndQuery implements gms.ProcessList. go-mysql-server also calls it when a statement's rows have been read,
// before the statement ends.
func (l *processList) EndQuery(ctx *gms.Context) {
	if ctx.IsInterpreted() {
		return
	}
	if p := l.find(ctx.Session.ID()); p != nil {
		p.end(ctx, l.clock.Now())
	}
}

// end notes that the statement of ctx has ended, unless another one runs.
func (p *process) end(ctx *gms.Context, now time.Time) {
	p.Lock()
	cancel := p.shown.Kill
	if p.shown.QueryPid != ctx.Pid() || cancel == nil {
		p.Unlock()
		return
	}
	p.shown.Command, p.shown.Query, p.shown.QueryPid, p.shown.Kill = gms.ProcessCommandSleep, "", 0, nil
	p.shown.StartedAt, p.shown.Database = now, ctx.Session.GetCurrentDatabase()
	p.Unlock()
	cancel()
}

// BeginOperation implements gms.ProcessList. An operation is no statement, but can be killed, too: the preparing of a
// statement is one.
func (l *processList) BeginOperation(ctx *gms.Context) (*gms.Context, error) {
	if ctx.IsInterpreted() {
		return ctx, nil
	}
	p := l.find(ctx.Session.ID())
	if p == nil {
		return nil, errNoProcess
	}
	p.Lock()
	defer p.Unlock()
	if p.shown.Kill != nil {
		return nil, fmt.Errorf("wire: connection %d runs a statement already", ctx.Session.ID())
	}
	begun, cancel := ctx.NewSubContext()
	p.shown.Kill = cancel
	return begun, nil
}

// EndOperation implements gms.ProcessList.
func (l *processList) EndOperation(ctx *gms.Context) {
	if ctx.IsInterpreted() {
		return
	}
	p := l.find(ctx.Session.ID())
	if p == nil {
		return
	}
	p.Lock()
	cancel := p.shown.Kill
	p.shown.Kill = nil
	p.Unlock()
	if cancel != nil {
		cancel()
	}
}
