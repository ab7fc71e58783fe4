package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/farmsql/farmsql"
)

// progressInterval is the minimum time between two updates of the line.
const progressInterval = 100 * time.Millisecond

// A progress shows on a terminal, in one line that it overwrites, how much of a task is done. If
// the output is not a terminal it shows nothing.
type progress struct {
	w    io.Writer
	what string

	mu    sync.Mutex
	shown time.Time
	width int // width of the line on the terminal; 0 if there is none
}

func newProgress(w io.Writer, what string) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, what: what}
}

// report updates the line if progressInterval has passed, or if all is done. Several goroutines may call
// it at once.
func (p *progress) report(done, total int64) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.shown) < progressInterval && done < total {
		return
	}
	p.shown = now
	line := fmt.Sprintf("%s: %3d %% of %v", p.what, 100*done/max(total, 1), farmsql.Size(total))
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = max(p.width, len(line))
}

// end clears the line.
func (p *progress) end() {
	if p.w == nil || p.width == 0 {
		return
	}
	fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
	p.width = 0
}
