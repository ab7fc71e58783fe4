package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// untilSignal returns a context that ends with the first signal that asks the server
// to close in an orderly way:
//
//	SIGTERM, SIGINT  from any sender
//	SIGQUIT          the same, as in MySQL; it first prints all goroutines to stderr
//	SIGPWR           the power fails
//	SIGHUP           the terminal has gone; without a terminal, the sender wants log
//	                 files to be reopened; there are none, so that is only logged
//
// After it, a second SIGTERM, SIGINT or SIGQUIT kills the process. SIGHUP and SIGPWR do not: a
// closing terminal sends SIGHUP several times, and a save in progress must not be torn. Signals
// that were ignored when the process started, as under nohup, stay ignored. stop ends the handling
// of signals.
func untilSignal(log *slog.Logger, stderr io.Writer) (ctx context.Context, stop func()) {
	signal.Ignore(syscall.SIGPIPE) // losing the reader of the log must not end the process
	var first, second []os.Signal
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			first, second = append(first, s), append(second, s)
		}
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGPWR} {
		if !signal.Ignored(s) {
			first = append(first, s)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, first...)
	hasTerminal := hasTerminal()
	go func() {
		for {
			select {
			case s := <-signals:
				if ctx.Err() == nil && asksToStop(s, hasTerminal, log, stderr) {
					signal.Reset(second...)
					cancel()
				}
			case <-ctx.Done():
				return // SIGHUP and SIGPWR still go to the channel, which has no reader any more
			}
		}
	}()
	return ctx, func() {
		cancel()
		signal.Stop(signals)
	}
}

// asksToStop reports whether a signal asks the server to close. For SIGQUIT it first prints the
// stacks of all goroutines.
func asksToStop(s os.Signal, hasTerminal bool, log *slog.Logger, stderr io.Writer) bool {
	switch s {
	case syscall.SIGHUP:
		if !hasTerminal {
			log.Info("SIGHUP without a terminal: going on; the log is standard error, and there are no log files to open anew")
			return false
		}
	case syscall.SIGQUIT:
		b := make([]byte, 8<<20)
		fmt.Fprintf(stderr, "SIGQUIT: goroutines\n\n%s\n", b[:runtime.Stack(b, true)])
	}
	log.Info("asked to stop", "signal", s.String())
	return true
}

// hasTerminal reports whether the process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = tty.Close()
	return true
}
