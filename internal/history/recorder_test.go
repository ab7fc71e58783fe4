package history

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestRecorder records clients of a store with one lock, which is correct. It also records clients
// of a store that releases its lock too early, which is not.
func TestRecorder(t *testing.T) {
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("broken=%v", broken), func(t *testing.T) {
			rec := NewRecorder()
			s := store{values: make([]Value, 4)}
			var group sync.WaitGroup
			for client := range 8 {
				group.Go(func() { s.client(rec, client, broken) })
			}
			group.Wait()
			report := rec.Check(Options{})
			if err := report.Err(); (err != nil) != broken {
				t.Errorf("report is %v", err)
			}
			if !broken && (report.Committed != 8*100 || report.Objects != 4) {
				t.Errorf("recorded %+v", report)
			}
		})
	}
}

type store struct {
	mu     sync.Mutex
	values []Value
}

func (s *store) client(rec *Recorder, client int, broken bool) {
	for n := range 100 {
		t := rec.Begin(fmt.Sprint(client))
		defer t.End(Unknown) // has ended by then: does nothing
		from, to := Object(n%4), Object((n+client)%4)
		s.mu.Lock()
		a, b := s.values[from], s.values[to]
		t.Read(from, a)
		t.Read(to, b)
		if broken { // everybody waits at this place now and then
			s.mu.Unlock()
			s.mu.Lock()
		}
		v := rec.Value()
		s.values[to] = v
		s.mu.Unlock()
		t.Write(to, v)
		t.End(Committed)
	}
	if broken { // clients that never meet would be right by chance
		s.loseUpdate(rec)
	}
}

// loseUpdate runs two transactions at the same time.
func (s *store) loseUpdate(rec *Recorder) {
	t, u := rec.Begin("t"), rec.Begin("u")
	for _, tx := range []*Recording{t, u} {
		tx.Read(9, Initial)
		tx.Write(9, rec.Value())
	}
	t.End(Committed)
	u.End(Committed)
}

func TestUndo(t *testing.T) {
	rec := NewRecorder()
	a := rec.Begin("a")
	a.Read(1, Initial)
	a.Write(1, 10)
	mark := a.Mark()
	a.Read(2, Initial)
	a.Write(1, 11)
	a.Read(1, 11) // its own, undone
	a.Write(2, 12)
	a.Undo(mark)
	a.Read(1, 10)
	a.End(Committed)
	b := rec.Begin("b")
	b.Read(1, 10)
	b.Read(2, Initial)
	b.End(Committed)
	if err := rec.Check(Options{}).Err(); err != nil {
		t.Error(err)
	}
	c := rec.Begin("c")
	c.Read(1, 11)
	c.End(Committed)
	if err := rec.Check(Options{}).Err(); err == nil || !strings.Contains(err.Error(), string(GarbageRead)) {
		t.Errorf("a write that was undone was seen: %v", err)
	}
}

func TestShownIsRecorded(t *testing.T) {
	rec := NewRecorder()
	a := rec.Begin("a")
	a.Read(1, 5)
	a.Shown()
	a.End(Aborted)
	if err := rec.Check(Options{}).Err(); err == nil {
		t.Error("not checked")
	}
}

func TestOpenTransactionIsReported(t *testing.T) {
	rec := NewRecorder()
	open := rec.Begin("a")
	if r := rec.Check(Options{}); len(r.Violations) != 1 || r.Violations[0].Kind != Malformed {
		t.Errorf("report is %v", r.Err())
	}
	open.End(Aborted)
	open.End(Committed) // too late
	if r := rec.Check(Options{}); r.Err() != nil || r.Aborted != 1 {
		t.Errorf("report is %+v", r)
	}
}
