package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKnownAbsences has histories with reads of absence whose verdict is known: no kind
// means correct.
func TestKnownAbsences(t *testing.T) {
	for name, c := range map[string]struct {
		history string
		options Options
		want    Kind
	}{
		"never there": {`1-2 committed a(x)`, Options{}, ""},
		"not there yet": {`
			1-5 committed r(x=0) w(x=1)
			2-9 committed a(x)`, Options{}, ""},
		"there all the time": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed a(x)`, Options{}, FalseAbsence},
		"there although nobody looked": {`
			1-2 committed r(x=0) w(x=1)
			3-9 committed a(x)
			4-5 committed r(x=1) w(x=2)`, Options{}, FalseAbsence},
		"for a moment not there": {`
			1-2 committed r(x=0) w(x=1)
			3-9 committed a(x)
			4-5 committed r(x=1) d(x=2)
			6-7 committed r(x=2) w(x=3)`, Options{}, ""},
		"deleted": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=1) d(x=2)
			8-9 committed a(x)`, Options{}, ""},
		"there again before it began": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed r(x=1) d(x=2)
			5-6 committed r(x=2) w(x=3)
			8-9 committed a(x)`, Options{}, FalseAbsence},
		"seen before it began, and deleted after it": {`
			1-20 committed r(x=0) w(x=1)
			2-3 committed r(x=1)
			4-5 committed a(x)
			6-7 committed r(x=1)`, Options{}, FalseAbsence},
		"seen by a chain of others before it began": {`
			1-90 committed r(x=0) w(x=1) r(y=0) w(y=1)
			2-3 committed r(y=1)
			4-5 committed a(x)`, Options{}, FalseAbsence},
		"absence goes back": {`
			1-90 committed r(x=0) w(x=1)
			1-90 committed r(x=1) d(x=2)
			20-21 committed a(x)
			30-31 committed r(x=1)
			40-41 committed a(x)`, Options{}, ""},
		"absence does not come back": {`
			1-90 committed r(x=0) w(x=1)
			20-21 committed r(x=1)
			40-41 committed a(x)`, Options{}, FalseAbsence},
		"deleted by nobody knows whom": {`
			1-2 committed r(x=0) w(x=1)
			3-4 unknown r(x=1) d(x=2)
			5-6 committed a(x)`, Options{}, ""},
		"perhaps deleted later": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed a(x)
			5-6 unknown r(x=1) d(x=2)`, Options{}, FalseAbsence},
		"unknown outcome of the read": {`
			1-2 committed r(x=0) w(x=1)
			3-4 unknown a(x)`, Options{}, ""},
		"aborted": {`
			1-2 committed r(x=0) w(x=1)
			3-4 aborted a(x)`, Options{}, ""},
		"whenever": {`
			1-2 committed r(x=0) w(x=1)
			3-4 committed a(x)`, Options{IgnoreTime: true}, ""},
		"by version": {`
			1-2 committed w(x=1@1)
			3-4 committed d(x=2@2)
			3-4 committed w(x=3@3)
			5-6 committed a(x)`, Options{}, FalseAbsence},
		"not alone": {`1-2 committed a(x) r(y=0)`, Options{}, Malformed},
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

// The test compares the check of reads of absence with the definition. With one such read and no
// transaction of unknown outcome, the check is exact. Otherwise it reports no correct history.
func TestAbsencesAgainstDefinition(t *testing.T) {
	var right, wrong, absent, missed int
	for seed := range uint64(30000) {
		r := rand.New(rand.NewPCG(seed, 5))
		txs := smallHistory(r, seed%2 == 0)
		exact := withAbsences(r, txs)
		want := serializable(txs)
		report := Check(txs, Options{})
		got := report.Err() == nil
		if got != want && (exact || want) {
			t.Fatalf("seed %d: checker says %v, definition says %v: %v\n%v", seed, got, want, txs, report.Err())
		}
		switch {
		case got != want:
			missed++
		case want:
			right++
		default:
			wrong++
		}
		if slices.ContainsFunc(report.Violations, func(v Violation) bool { return v.Kind == FalseAbsence }) {
			absent++
		}
	}
	t.Logf("%d right, %d wrong, %d of them for a read of absence, %d missed", right, wrong, absent, missed)
	if right < 1000 || wrong < 1000 || absent < 300 || missed > wrong/10 {
		t.Errorf("%d histories right, %d wrong, %d of them for a read of absence, %d missed", right, wrong, absent, missed)
	}
}

// withAbsences turns some writes of a history into deletions, and one or two of its transactions
// into reads of absence. It reports whether the check is exact for the result.
func withAbsences(r *rand.Rand, txs []Transaction) (exact bool) {
	exact = true
	reads := 1 + r.IntN(2)
	for i := range txs {
		t := &txs[i]
		if t.Outcome == Unknown {
			exact = false
		}
		if i < reads {
			o := t.Ops
			t.Outcome, t.Ops = Committed, []Op{{Object: Object(r.IntN(2)), Absent: true}}
			for _, op := range o {
				if op.Write {
					forget(txs, op)
				}
			}
			continue
		}
		for k := range t.Ops {
			t.Ops[k].Absent = t.Ops[k].Write && r.IntN(3) == 0
		}
	}
	return exact && reads == 1
}

// forget removes all reads of the value that the removed op wrote.
func forget(txs []Transaction, op Op) {
	for i := range txs {
		for k := range txs[i].Ops {
			if p := &txs[i].Ops[k]; !p.Write && p.Object == op.Object && p.Value == op.Value {
				p.Value = Initial
			}
		}
	}
}
