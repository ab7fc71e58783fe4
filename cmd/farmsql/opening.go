package main

import (
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/sql/wire"
)

// openPatience is how long a client waits if it connects while a database is being opened;
// --unavailable-after overrides it.
const openPatience = 3 * time.Second

// An opening records what the opening of a database waits for.
type opening struct {
	operator atomic.Pointer[farmsql.Operator]
}

// forClients is the text for clients that have not logged in.
const forClients = "this machine is starting, and serves nobody yet: its log and farmsql status say what it waits for"

// text returns what the opening waits for, in words for the log.
func (o *opening) text() string {
	what := "opens its data folder"
	if x := o.operator.Load(); x != nil {
		if starting := x.Status().Starting; starting != "" {
			what = starting
		}
	}
	return "it " + what
}

// turnAway refuses clients of l with forClients, and logs the reason, once opening takes longer
// than patience.
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
