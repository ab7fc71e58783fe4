package history

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// parse reads a transaction written as
//
//	10-20 committed r(x=0) w(x=1) w(y=2@7)
//
// where @7 is the version of a write, x, y, z are objects 1, 2, 3, and an
// outcome may be "unknown", "aborted" or "shown" (aborted, but shown). d(x=1) is a write
// that deletes, a(x) a read of absence.
func parse(t *testing.T, line string) Transaction {
	t.Helper()
	fields := strings.Fields(line)
	var tx Transaction
	if _, err := fmt.Sscanf(fields[0], "%d-%d", &tx.Start, &tx.End); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	switch fields[1] {
	case "committed":
		tx.Outcome = Committed
	case "aborted":
		tx.Outcome = Aborted
	case "shown":
		tx.Outcome, tx.Shown = Aborted, true
	case "unknown":
	default:
		t.Fatalf("%q: outcome", line)
	}
	for _, f := range fields[2:] {
		tx.Ops = append(tx.Ops, parseOp(t, f))
	}
	return tx
}

func parseOp(t *testing.T, f string) Op {
	t.Helper()
	if f[:2] == "a(" {
		return Op{Object: Object(f[2] - 'w'), Absent: true}
	}
	value, version, _ := strings.Cut(strings.TrimSuffix(f[4:], ")"), "@")
	op := Op{Write: f[0] != 'r', Object: Object(f[2] - 'w'), Absent: f[0] == 'd'}
	n, err := strconv.ParseUint(value, 10, 64)
	op.Value = Value(n)
	if err == nil && version != "" {
		op.Version, err = strconv.ParseUint(version, 10, 64)
	}
	if err != nil || f[:2] != "r(" && f[:2] != "w(" && f[:2] != "d(" {
		t.Fatalf("%q: %v", f, err)
	}
	return op
}

func parseAll(t *testing.T, text string) []Transaction {
	t.Helper()
	var txs []Transaction
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			txs = append(txs, parse(t, line))
		}
	}
	return txs
}

// TestKnown has histories whose verdict is known: no kind means correct.
func TestKnown(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		options Options
		want    Kind
	}{
		"empty": {"", Options{}, ""},
		"one after the other": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=1) w(x=2)
			5-6 committed r(x=2)`, Options{}, ""},
		"overlapping, either order": {`
			1-9 committed r(x=0) w(x=1)
			2-8 committed r(x=1) r(y=0)
			1-8 committed r(x=0) r(y=0)`, Options{}, ""},
		"later start, earlier in order": {`
			1-9 committed r(x=1) r(y=0)
			2-3 committed r(x=0) w(x=1)`, Options{}, ""},
		"touching stamps are concurrent": {`
			1-5 committed r(x=0) w(x=1)
			5-9 committed r(x=0)`, Options{}, ""},
		"blind writes with versions": {`
			1-9 committed w(x=7@3)
			1-9 committed w(x=8@1)
			1-9 committed w(x=9@2) r(y=0)
			10-11 committed r(x=7)`, Options{}, ""},
		"own writes are seen": {`
			1-2 committed r(x=0) w(x=1) r(x=1) w(x=2) r(x=2)
			3-4 committed r(x=2)`, Options{}, ""},

		"stale read": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=0)`, Options{}, StaleRead},
		"stale read is serializable": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=0)`, Options{IgnoreTime: true}, ""},
		"stale read, with versions": {`
			1-2 committed w(x=1@1)
			3-4 committed w(x=2@2)
			5-6 committed r(x=1)`, Options{}, StaleRead},
		"read from the future": {`
			1-2 committed r(x=1)
			3-4 committed r(x=0) w(x=1)`, Options{}, TimeTravel},
		"versions against time": {`
			1-2 committed w(x=1@2)
			3-4 committed w(x=2@1)`, Options{}, TimeTravel},
		"causal chain against time": {`
			1-2 committed r(x=0) w(x=1)
			3-9 committed r(x=1) r(y=0) w(y=2)
			3-9 committed r(y=2) r(z=0) w(z=3)
			1-9 committed r(z=3) r(x=0)`, Options{}, TimeTravel},

		"lost update": {`
			1-9 committed r(x=0) w(x=1)
			1-9 committed r(x=0) w(x=2)`, Options{}, LostUpdate},
		"lost update, with versions": {`
			1-9 committed r(x=0) w(x=1@1)
			1-9 committed r(x=0) w(x=2@2)`, Options{}, LostUpdate},
		"one version written twice": {`
			1-9 committed w(x=1@5)
			1-9 committed w(x=2@5)`, Options{}, LostUpdate},
		"write skew": {`
			1-9 committed r(x=0) r(y=0) w(x=1)
			1-9 committed r(x=0) r(y=0) w(y=2)`, Options{}, WriteSkew},
		"write skew of three": {`
			1-9 committed r(x=0) r(y=0) w(x=1)
			1-9 committed r(y=0) r(z=0) w(y=2)
			1-9 committed r(z=0) r(x=0) w(z=3)`, Options{}, WriteSkew},
		"fractured read": {`
			1-9 committed r(x=0) r(y=0) w(x=1) w(y=1)
			1-9 committed r(x=1) r(y=0)`, Options{}, FracturedRead},
		"long fork": {`
			1-9 committed r(x=0) w(x=1)
			1-9 committed r(y=0) w(y=2)
			1-9 committed r(x=1) r(y=0)
			1-9 committed r(x=0) r(y=2)`, Options{}, LongFork},
		"circular flow": {`
			1-9 committed r(x=0) w(x=1) r(y=2)
			1-9 committed r(y=0) w(y=2) r(x=1)`, Options{}, CircularFlow},

		"dirty read": {`
			1-2 aborted r(x=0) w(x=1)
			1-9 committed r(x=1)`, Options{}, DirtyRead},
		"garbage read": {`
			1-9 committed r(x=5)`, Options{}, GarbageRead},
		"read before its own write": {`
			1-9 committed r(x=5) w(x=5)`, Options{}, GarbageRead},
		"intermediate read": {`
			1-9 committed r(x=0) w(x=1) w(x=2)
			1-9 committed r(x=1)`, Options{}, IntermediateRead},
		"unrepeatable read": {`
			1-9 committed r(x=0) w(x=1)
			1-9 committed r(x=0) r(x=1)`, Options{}, UnstableRead},
		"own write not seen": {`
			1-9 committed r(x=0) w(x=1) r(x=0)`, Options{}, UnstableRead},

		"aborted may see anything": {`
			1-9 committed r(x=0) r(y=0) w(x=1) w(y=1)
			1-9 aborted r(x=1) r(y=0) r(z=77)`, Options{}, ""},
		"shown must have existed": {`
			1-9 committed r(x=0) r(y=0) w(x=1) w(y=1)
			1-9 shown r(x=1) r(y=0)`, Options{}, FracturedRead},
		"opacity": {`
			1-9 committed r(x=0) r(y=0) w(x=1) w(y=1)
			1-9 aborted r(x=1) r(y=0)`, Options{Opacity: true}, FracturedRead},
		"opaque": {`
			1-9 committed r(x=0) r(y=0) w(x=1) w(y=1)
			1-9 aborted r(x=1) w(x=7) r(y=1) r(x=7)`, Options{Opacity: true}, ""},
		"aborted writes do not count": {`
			1-2 shown r(x=0) w(x=1)
			3-4 committed r(x=0) w(x=2)`, Options{}, ""},

		"unknown and unseen": {`
			1-2 unknown r(x=0) w(x=1)
			3-4 committed r(x=0) w(x=2)`, Options{}, ""},
		"unknown and seen": {`
			1-2 unknown r(x=0) w(x=1)
			3-4 committed r(x=1) w(x=2)
			5-6 committed r(x=1)`, Options{}, StaleRead},
		"unknown, seen later than it was given up": {`
			1-2 unknown r(x=0) w(x=1)
			3-4 committed r(x=0)
			5-6 committed r(x=1)`, Options{}, ""},
		"unknown, seen and unseen again": {`
			1-2 unknown r(x=0) w(x=1)
			3-4 committed r(x=1)
			5-6 committed r(x=0)`, Options{}, TimeTravel},
		"unknown seen by an unknown that was seen": {`
			1-2 unknown r(x=0) w(x=1)
			3-4 unknown r(x=1) r(y=0) w(y=2)
			5-6 committed r(y=2)
			7-8 committed r(x=0)`, Options{}, TimeTravel},
		"unknown with a skew nobody sees": {`
			1-9 committed r(x=0) r(y=0) w(x=1)
			1-9 unknown r(x=0) r(y=0) w(y=2)`, Options{}, ""},

		"value written twice": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=1) w(x=1)`, Options{}, Malformed},
		"initial value written": {`
			1-2 committed r(x=0) w(x=0)`, Options{}, Malformed},
		"ends before it begins": {`
			5-2 committed r(x=0)`, Options{}, Malformed},
		"order of writes unknown": {`
			1-2 committed w(x=1)`, Options{}, Malformed},
		"some versions": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=1) w(x=2@2)`, Options{}, Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(parseAll(t, c.history), c.options)
			if c.want == "" {
				if err := r.Err(); err != nil {
					t.Error(err)
				}
				return
			}
			if len(r.Violations) != 1 || r.Violations[0].Kind != c.want {
				t.Errorf("want one %s, got %v", c.want, r.Violations)
			}
		})
	}
}

// The report has all that a person needs to understand a violation.
func TestReport(t *testing.T) {
	txs := parseAll(t, `
		1-9 committed r(x=0) r(y=0) w(x=1)
		2-8 committed r(x=0) r(y=0) w(y=2)
		10-11 committed r(x=1) r(y=2)
		10-11 aborted r(x=0)
		12-12 unknown w(z=9)`)
	txs[1].Label = "m1"
	r := Check(txs, Options{Name: func(o Object) string { return string(rune('w' + o)) }})
	const want = `history of 3 transactions is not strictly serializable
write skew: 2 transactions cannot be ordered
	T0 read y=0, which T1(m1) replaced by 2, so T0 is before T1(m1)
	T1(m1) read x=0, which T0 replaced by 1, so T1(m1) is before T0
	T0 committed, from 1 to 9 read x=0 read y=0 wrote x=1
	T1(m1) committed, from 2 to 8 read x=0 read y=0 wrote y=2`
	if got := r.Err().Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.Transactions != 3 || r.Committed != 3 || r.Aborted != 1 || r.Unknown != 1 || r.Objects != 3 || r.Dependencies != 4 {
		t.Errorf("counts are %+v", r)
	}
}

// The check finds the short cycle even if there are long ones.
func TestShortestCycleIsReported(t *testing.T) {
	var txs []Transaction
	for i := range 30 { // a long cycle: each reads what the next replaces
		o, next := Object(100+i), Object(100+(i+1)%30)
		txs = append(txs, Transaction{End: 100, Outcome: Committed, Ops: []Op{{Object: o}, {Write: true, Object: o, Value: 1}, {Object: next}}})
	}
	txs[7].Ops = append(txs[7].Ops, Op{Object: 109}) // and one through 7, 9, ... skips nothing
	txs[9].Ops = append(txs[9].Ops, Op{Object: 107}) // 7 and 9: a skew of two
	r := Check(txs, Options{})
	if len(r.Violations) != 1 || len(r.Violations[0].Transactions) != 2 {
		t.Fatalf("got %v", r.Err())
	}
}

func TestManyViolationsAreCut(t *testing.T) {
	var txs []Transaction
	for i := range 100 {
		txs = append(txs, Transaction{End: 1, Outcome: Committed, Ops: []Op{{Object: Object(i), Value: 1}}})
	}
	r := Check(txs, Options{})
	if len(r.Violations) != violationsMax || r.Dropped != 100-violationsMax {
		t.Errorf("%d reported, %d dropped", len(r.Violations), r.Dropped)
	}
	if !strings.HasSuffix(r.Err().Error(), "and 80 more violations") {
		t.Error(r.Err())
	}
}
