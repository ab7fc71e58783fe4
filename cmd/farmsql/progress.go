package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/farmsql/farmsql"
)

// progressInterval is the least time between two lines of a progress.
const progressInterval = 100 * time.Millisecond

// A progress shows on a terminal, in one line that changes, how much of something
// is done. Elsewhere it shows nothing.
type progress struct {
	w    io.Writer
	what string

	mu    sync.Mutex
	shown time.Time
	width int // of the line that is there; 0 if none
}

func newProgress(w io.Writer, what string) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w, what: what}
}

// report shows it, if it is time. Several goroutines may call it at once.
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

// end takes the line away.
func (p *progress) end() {
	if p.w == nil || p.width == 0 {
		return
	}
	fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
	p.width = 0
}
