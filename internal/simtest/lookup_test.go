package simtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// lonely returns a client of a run that has not begun.
func lonely() *client {
	r := newRun(Draw(1))
	return &client{run: r, node: &node{process: r.outside}, label: "client"}
}

// valueBytes returns the bytes of a key whose value is v.
func valueBytes(v history.Value) []byte {
	b := make([]byte, 16)
	fill(b, v)
	return b
}

// inserted records that key i is there, and returns its value.
func (c *client) inserted(i int) []byte {
	h := c.rec.Begin("writer")
	v := c.rec.Value()
	h.Read(objectOf(inHash, i), history.Initial)
	h.Write(objectOf(inHash, i), v)
	h.End(history.Committed)
	return valueBytes(v)
}

// The history shows a lookup that finds nothing although the key exists all the time, whether it
// runs alone or together with others. A lookup without an answer does not count as one that finds
// nothing.
func TestFalseAbsenceIsSeen(t *testing.T) {
	for name, look := range map[string]struct {
		f    func(c *client, b []byte) error
		want history.Kind
	}{
		"found": {f: func(c *client, b []byte) error {
			return c.lockFree(func() error { return c.recordAnswer(objectOf(inHash, 1), b, true) })
		}},
		"not found": {want: history.FalseAbsence, f: func(c *client, b []byte) error {
			return c.lockFree(func() error { return c.recordAnswer(objectOf(inHash, 1), nil, false) })
		}},
		"no answer": {f: func(c *client, b []byte) error {
			return c.lockFree(func() error { return region.ErrLocked })
		}},
		"one of two not found": {want: history.FalseAbsence, f: func(c *client, b []byte) error {
			return c.lookUpTogether(func(_ [][]byte, visit func(int, []byte, bool)) error {
				visit(1, nil, false)
				visit(0, nil, false) // which is right
				return nil
			}, []int{2, 1})
		}},
		"not found, and then it failed": {want: history.FalseAbsence, f: func(c *client, b []byte) error {
			return c.lookUpTogether(func(_ [][]byte, visit func(int, []byte, bool)) error {
				visit(1, nil, false)
				return outcome.ErrConflict
			}, []int{2, 1})
		}},
	} {
		c := lonely()
		if err := look.f(c, c.inserted(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		found := c.rec.Check(history.Options{}).Violations
		if look.want == "" && len(found) > 0 || look.want != "" && (len(found) != 1 || found[0].Kind != look.want) {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// A lookup whose answer can be neither right nor wrong fails the run.
func TestLookupsThatFail(t *testing.T) {
	together := func(lookUp func(_ [][]byte, visit func(int, []byte, bool)) error) func(*client) error {
		return func(c *client) error { return c.lookUpTogether(lookUp, []int{1, 2}) }
	}
	for want, f := range map[string]func(*client) error{
		"was not answered": together(func(_ [][]byte, visit func(int, []byte, bool)) error { visit(0, nil, false); return nil }),
		"was answered twice": together(func(_ [][]byte, visit func(int, []byte, bool)) error {
			for _, k := range []int{0, 0, 1} {
				visit(k, nil, false)
			}
			return nil
		}),
		"a value is torn": together(func(_ [][]byte, visit func(int, []byte, bool)) error {
			visit(0, append(valueBytes(7), valueBytes(8)...), true)
			visit(1, nil, false)
			return nil
		}),
		"object has been freed": func(c *client) error { return c.lockFree(func() error { return region.ErrFreed }) },
		"no answer": func(c *client) error {
			c.alone = true
			return c.lockFree(func() error { return fmt.Errorf("%w: for long", outcome.ErrConflict) })
		},
	} {
		if err := f(lonely()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := asNoAnswer(&txn.AbortError{Reason: txn.ReasonFreed}); errors.Is(err, errNoAnswer) {
		t.Errorf("an object that is gone is no answer: %v", err)
	}
}
