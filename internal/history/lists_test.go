package history

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// recordLists records transactions as parse reads them, which may also append, as in +(x=1), and read
// lists, as in l(x=1,2).
func recordLists(t *testing.T, text string) *Recorder {
	t.Helper()
	rec := NewRecorder()
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		as := parse(t, strings.Join(fields[:2], " "))
		r := rec.Begin("")
		for _, f := range fields[2:] {
			o := Object(f[2] - 'w')
			var values []Value
			for s := range strings.SplitSeq(strings.TrimSuffix(f[4:], ")"), ",") {
				if n, err := strconv.ParseUint(s, 10, 64); err == nil {
					values = append(values, Value(n))
				}
			}
			if f[0] == '+' {
				r.Append(o, values[0])
			} else {
				r.ReadList(o, values)
			}
		}
		r.tx.Start = as.Start
		r.End(as.Outcome)
		rec.mu.txs[len(rec.mu.txs)-1].End = as.End
	}
	return rec
}

// TestLists has histories of lists whose verdict is known.
func TestLists(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		want    Kind
	}{
		"one after the other": {`
			1-2 committed +(x=1)
			3-4 committed +(x=2) l(x=1,2)
			5-6 committed l(x=1,2)`, ""},
		"overlapping, either order": {`
			1-9 committed +(x=1) +(y=2)
			1-9 committed +(x=3)
			1-9 committed l(x=) l(y=)
			10-11 committed l(x=3,1) l(y=2)`, ""},
		"two appends to a list": {`
			1-2 committed +(x=1) l(x=1) +(x=2) l(x=1,2)
			3-4 committed l(x=1,2)`, ""},
		"aborted": {`
			1-2 aborted +(x=1) l(x=1)
			3-4 committed l(x=)`, ""},
		"unknown and unseen": {`
			1-2 unknown +(x=1)
			3-4 committed l(x=)`, ""},
		"unknown and seen later": {`
			1-2 unknown +(x=1) +(y=2)
			3-4 committed l(x=)
			5-6 committed +(x=3)
			7-8 committed l(x=3,1) l(y=2)`, ""},

		"lost": {`
			1-2 committed +(x=1)
			3-4 committed +(x=2)
			5-6 committed l(x=2)`, LostAppend},
		"lost at the end": {`
			1-2 committed +(x=1)
			3-4 committed +(x=2)
			5-6 committed l(x=1)`, LostAppend},
		"lost half of an unknown": {`
			1-2 unknown +(x=1) +(y=2)
			3-4 committed +(x=3)
			5-6 committed l(x=1,3) l(y=)`, LostAppend},
		"vanished": {`
			1-2 committed +(x=1)
			3-4 committed l(x=1)
			5-6 committed l(x=)`, StaleRead},
		"vanished from the middle": {`
			1-2 committed +(x=1)
			3-4 committed +(x=2)
			5-6 committed l(x=1,2)
			7-8 committed l(x=2)`, ForkedList},
		"two orders": {`
			1-9 committed +(x=1)
			1-9 committed +(x=2)
			1-9 committed l(x=1,2)
			1-9 committed l(x=2,1)`, ForkedList},
		"doubled": {`
			1-2 committed +(x=1)
			3-4 committed l(x=1,1)`, DoubledAppend},
		"nobody's": {`
			1-2 committed +(x=1)
			3-4 committed l(x=7,1)`, GarbageRead},
		"aborted and seen": {`
			1-2 aborted +(x=1)
			1-4 committed +(x=2)
			5-6 committed l(x=1,2)`, DirtyRead},
		"not next to each other": {`
			1-9 committed +(x=1) +(x=2)
			1-9 committed +(x=3)
			10-11 committed l(x=1,3,2)`, FracturedRead},
		"own append not seen": {`
			1-9 committed +(x=1) l(x=)
			10-11 committed l(x=1)`, UnstableRead},
		"others' append comes between": {`
			1-9 committed l(x=) +(x=2) l(x=1,2)
			1-9 committed +(x=1)
			10-11 committed l(x=1,2)`, LostUpdate},
		"stale read": {`
			1-2 committed +(x=1)
			3-4 committed l(x=)
			5-6 committed l(x=1)`, StaleRead},
		"append comes before one that had ended": {`
			1-2 committed +(x=1)
			3-4 committed +(x=2)
			5-6 committed l(x=2,1)`, TimeTravel},
		"fractured read": {`
			1-9 committed +(x=1) +(y=2)
			1-9 committed l(x=1) l(y=)
			10-11 committed l(x=1) l(y=2)`, FracturedRead},
		"write skew": {`
			1-9 committed l(x=) +(y=1)
			1-9 committed l(y=) +(x=2)
			10-11 committed l(x=2) l(y=1)`, WriteSkew},
		"long fork": {`
			1-9 committed +(x=1)
			1-9 committed +(y=2)
			1-9 committed l(x=1) l(y=)
			1-9 committed l(x=) l(y=2)
			10-11 committed l(x=1) l(y=2)`, LongFork},
		"an unknown that was seen in a list's middle counts": {`
			1-2 unknown l(y=) +(x=1)
			1-9 committed +(y=2)
			3-4 committed l(y=2)
			5-6 committed +(x=3)
			5-9 committed l(x=)
			10-11 committed l(x=3,1) l(y=2)`, TimeTravel},
	} {
		t.Run(name, func(t *testing.T) {
			r := recordLists(t, c.history).Check(Options{})
			if c.want == "" {
				if err := r.Err(); err != nil {
					t.Error(err)
				}
				return
			}
			if len(r.Violations) == 0 || r.Violations[0].Kind != c.want {
				t.Errorf("want %s first, got %v", c.want, r.Err())
			}
		})
	}
}

// Many forked reads are counted, and some of them reported.
func TestManyForksAreCut(t *testing.T) {
	rec := NewRecorder()
	for i := range 100 {
		r := rec.Begin(fmt.Sprint(i))
		r.Append(1, Value(i+1))
		r.End(Committed)
		r = rec.Begin("")
		r.ReadList(1, []Value{Value(i + 1)})
		r.End(Committed)
	}
	r := rec.Check(Options{})
	if len(r.Violations) != violationsMax || r.Dropped == 0 {
		t.Errorf("%d reported, %d dropped", len(r.Violations), r.Dropped)
	}
}
