package failure

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
)

// A Log parses the machines' log lines, which are JSON. Add is for
// bench.ClusterConfig.Log.
type Log struct {
	mu     sync.Mutex
	events []event
}

// An event is a line of a machine's log. Its kind determines which fields after
// Message are set.
type event struct {
	Time    time.Time     `json:"time"`
	Message string        `json:"msg"`
	Machine int           `json:"-"` // the machine whose log has the line
	Suspect *int          `json:"suspect"`
	ID      uint64        `json:"configuration"`
	Members []int         `json:"machines"`
	Took    time.Duration `json:"took"`
	Steps   string        `json:"steps"`
	Bytes   int64         `json:"bytes"` // read from other machines to fill a replica
	Of      int64         `json:"of"`    // held by the filled replica
	Length  time.Duration `json:"length"`
	KeptBy  string        `json:"kept by"`
}

// Messages of events.
const (
	leasesKept   = "leases"
	suspected    = "machine suspected"
	stored       = "configuration stored"
	reconfigured = "reconfigured"
	filled       = "replica filled"
)

// Add takes a line of a machine's log. It ignores lines that are not events.
func (l *Log) Add(machine int, line string) {
	e := event{Machine: machine}
	if json.Unmarshal([]byte(line), &e) != nil || e.Time.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// since returns the events of a kind that happened from a moment on, in order.
func (l *Log) since(moment time.Time, message string) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []event
	for _, e := range l.events {
		if e.Message == message && !e.Time.Before(moment) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b event) int { return a.Time.Compare(b.Time) })
	return found
}

// forget drops events before a moment, except those that say how leases are kept.
func (l *Log) forget(moment time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = slices.DeleteFunc(l.events, func(e event) bool { return e.Time.Before(moment) && e.Message != leasesKept })
}

// A reconfiguration has the times of its steps, at the machine that led it.
type reconfiguration struct {
	suspected, probed, stored, committed, allActive time.Time
}

var stepsPattern = regexp.MustCompile(`: probed after (\S+), stored (\S+), acknowledged \S+, committed (\S+), all regions active (\S+)$`)

// timesOf reads the steps of a reconfiguration from its event, which was logged when
// all regions were active.
func timesOf(e *event) (reconfiguration, error) {
	found := stepsPattern.FindStringSubmatch(e.Steps)
	if found == nil {
		return reconfiguration{}, fmt.Errorf("failure: no steps in %q, which machine %d has logged", e.Steps, e.Machine)
	}
	r := reconfiguration{suspected: e.Time.Add(-e.Took)}
	for i, step := range []*time.Time{&r.probed, &r.stored, &r.committed, &r.allActive} {
		after, err := time.ParseDuration(found[i+1])
		if err != nil {
			return r, fmt.Errorf("failure: the steps that machine %d has logged: %w", e.Machine, err)
		}
		*step = r.suspected.Add(after)
	}
	return r, nil
}

// withoutAll returns the first reconfiguration that made all regions active after a configuration
// without any of the victims was stored; ok is false until there has been one. If a configuration is
// replaced before its regions are active, no such event is logged for it.
func (l *Log) withoutAll(victims []int, since time.Time) (r reconfiguration, ok bool, err error) {
	isVictim := func(m int) bool { return slices.Contains(victims, m) }
	var first uint64
	for _, e := range l.since(since, stored) {
		if !slices.ContainsFunc(e.Members, isVictim) && (first == 0 || e.ID < first) {
			first = e.ID
		}
	}
	if first == 0 {
		return r, false, nil
	}
	for _, e := range l.since(since, reconfigured) {
		if e.ID >= first {
			r, err = timesOf(&e)
			return r, err == nil, err
		}
	}
	return r, false, nil
}

// firstSuspicion returns the earlier of two times: when the first machine suspected one of the victims,
// and when the leader began the reconfiguration.
func (l *Log) firstSuspicion(victims []int, since time.Time, r *reconfiguration) time.Time {
	first := r.suspected
	for _, e := range l.since(since, suspected) {
		if e.Suspect != nil && slices.Contains(victims, *e.Suspect) && e.Time.Before(first) {
			first = e.Time
		}
	}
	return first
}
