package bench

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"
)

// A Progress shows the progress of loading and running: as bars on a terminal,
// otherwise as a line for each stage that has ended. nil shows nothing.
type Progress struct {
	w      io.Writer
	isTerm bool
	// tell, if not nil, receives the progress in place of the display.
	tell func(stageReport)
}

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	return &Progress{w: w, isTerm: ok && term.IsTerminal(int(f.Fd()))}
}

// Units in which a stage counts.
type unit int

const (
	unitCount unit = iota
	unitTime
)

// A Stage is a part of the work, of known length. It is safe for concurrent use.
type Stage struct {
	p       *Progress
	what    string
	total   int
	begin   time.Time
	done    atomic.Int64
	told    atomic.Int64 // time of the last display, since begin
	bar     *progress.Tracker
	drawing sync.WaitGroup
}

// Stage begins a part of the work, with a description and a number of steps.
func (p *Progress) Stage(what string, steps int) *Stage { return p.stage(what, steps, unitCount) }

func (p *Progress) stage(what string, total int, u unit) *Stage {
	s := &Stage{p: p, what: what, total: total, begin: time.Now()}
	if p == nil || !p.isTerm {
		return s
	}
	s.bar = &progress.Tracker{Message: what, Total: int64(total), AutoStopDisabled: true}
	if u == unitTime {
		s.bar.Units = progress.Units{Formatter: func(ns int64) string { return time.Duration(ns).Truncate(time.Second).String() }}
	}
	w := progress.NewWriter()
	w.SetOutputWriter(p.w)
	w.SetUpdateFrequency(stageInterval)
	w.SetTrackerLength(40)
	w.SetStyle(progress.StyleBlocks)
	w.Style().Visibility.ETA = true
	w.SetAutoStop(true) // needed because Stop has no effect before the first drawing
	w.AppendTracker(s.bar)
	s.drawing.Go(w.Render)
	return s
}

// Add adds n finished steps.
func (s *Stage) Add(n int) { s.set(int(s.done.Add(int64(n)))) }

// set shows n in the bar, and tells the parent process, at most once per stageInterval.
func (s *Stage) set(n int) {
	if s.bar != nil {
		s.bar.SetValue(int64(n))
	}
	if s.p == nil || s.p.tell == nil {
		return
	}
	told, now := s.told.Load(), int64(time.Since(s.begin))
	if now-told >= int64(stageInterval) && s.told.CompareAndSwap(told, now) {
		s.p.tell(stageReport{What: s.what, Done: n, Total: s.total})
	}
}

// stageInterval is the interval between two displays of a stage's progress.
const stageInterval = 100 * time.Millisecond

// Done ends the stage, whether or not all of it was done.
func (s *Stage) Done() {
	if s.p == nil {
		return
	}
	if s.p.tell != nil {
		s.p.tell(stageReport{What: s.what, Done: int(s.done.Load()), Total: s.total, IsOver: true})
		return
	}
	if s.bar == nil {
		// Errors are ignored: perhaps nobody reads the output.
		_, _ = fmt.Fprintf(s.p.w, "%s: %.1f s\n", s.what, time.Since(s.begin).Seconds())
		return
	}
	s.bar.MarkAsDone()
	s.drawing.Wait()
}
