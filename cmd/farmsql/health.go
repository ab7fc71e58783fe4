package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
)

// healthConnections is how many clients of --http may be connected; others wait. So strangers do not
// use up the files that the process may open.
const healthConnections = 32

// healthPatience bounds how long a client of --http may take for its request, and how long an idle
// connection is kept.
const healthPatience = 10 * time.Second

// A health answers whether the process lives, and whether it serves clients of MySQL, for load
// balancers and supervisors.
type health struct {
	operator atomic.Pointer[farmsql.Operator] // operator of the machine's latest life; nil before the first
	open     atomic.Bool                      // the database is open, and its clients are served
	stopping atomic.Bool                      // the process has been asked to stop
	server   http.Server
}

// serveHealth answers HTTP requests at an address until end is called; if the address is empty, it
// does nothing.
func serveHealth(address string, log *slog.Logger) (h *health, end func() error, err error) {
	h = new(health)
	if address == "" {
		return h, func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil, fmt.Errorf("%s is in use: another server listens there (choose another --http)", address)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on %s (--http): %w", address, err)
	}
	h.server = http.Server{
		Handler: h.handler(), ReadTimeout: healthPatience, WriteTimeout: healthPatience, IdleTimeout: healthPatience,
		MaxHeaderBytes: 8 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { _ = h.server.Serve(newLimited(l, healthConnections)) }() // until end is called
	log.Info("health", "address", l.Addr().String())
	return h, h.server.Close, nil
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", h.answer)
	return mux
}

// answer replies 200. With ?ready=1, it replies 503 and the reason if the machine does not serve
// clients.
func (h *health) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	text := "ok"
	if r.URL.Query().Get("ready") == "1" {
		reason := h.unready()
		if text = "ready"; reason != "" {
			text = reason
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	_, _ = io.WriteString(w, text+"\n") // fails only if the client has gone
}

// unready returns the reason for which the machine serves no clients, or "".
func (h *health) unready() string {
	switch o := h.operator.Load(); {
	case h.stopping.Load():
		return "stopping"
	case o == nil:
		return "starting"
	default:
		return unready(o.Status(), h.open.Load())
	}
}

// unready returns the reason for which a machine with this status serves no clients, or ""; isOpen
// says whether its database is open.
func unready(s farmsql.Status, isOpen bool) string {
	switch {
	case s.Ended != "":
		return "no longer a member: " + s.Ended
	case s.Starting != "":
		return "starting: it " + s.Starting
	case !isOpen:
		return "starting"
	case s.Unavailable != "":
		return "not available: " + s.Unavailable
	case s.Lease != nil && !s.Lease.IsValid:
		return "not available: it holds no lease"
	}
	for _, a := range s.Absences() {
		if slices.Contains(a.Regions, s.Root) { // nothing can be found without it
			return "not available: " + a.String()
		}
	}
	return ""
}
