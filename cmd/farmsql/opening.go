package main

import (
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/sql/wire"
)

// openPatience is how long clients that connect while a database is being opened wait to
// be served, if --unavailable-after does not say.
const openPatience = 3 * time.Second

// An opening says what a database waits for that is being opened.
type opening struct {
	operator atomic.Pointer[farmsql.Operator]
}

// forClients is what those are told who have not logged in.
const forClients = "this machine is starting, and serves nobody yet: its log and farmsql status say what it waits for"

// text is for the log.
func (o *opening) text() string {
	what := "opens its data folder"
	if x := o.operator.Load(); x != nil {
		if said := x.Status().Starting; said != "" {
			what = said
		}
	}
	return "it " + what
}

// turnAway tells those who connect to l so, and the log, once it takes longer than patience.
func (o *opening) turnAway(l net.Listener, patience time.Duration, log *slog.Logger) (stop func()) {
	late := time.AfterFunc(patience, func() {
		log.Warn("not open yet: clients are refused", "address", l.Addr().String(), "reason", o.text())
	})
	end := wire.TurnAway(l.(*net.TCPListener), patience, forClients) // --listen is TCP
	return func() {
		late.Stop()
		end()
	}
}
