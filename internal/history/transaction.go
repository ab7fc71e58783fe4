package history

import (
	"fmt"
	"strings"
)

// An Object names what transactions read and write.
type Object uint64

// A Value distinguishes the writes to one object.
type Value uint64

// Initial is the value of an object that no transaction of the history wrote.
// No write may have it.
const Initial Value = 0

// Outcome is how a transaction ended, as far as its client knows.
type Outcome uint8

const (
	Unknown   Outcome = iota // the client was not told: a lost connection, a crash
	Committed                // the client was told that it committed
	Aborted                  // the client was told that it aborted; nobody may see its writes
)

func (o Outcome) String() string {
	switch o {
	case Committed:
		return "committed"
	case Aborted:
		return "aborted"
	}
	return "outcome unknown"
}

// An Op is one read or write, in the order in which the transaction did it.
type Op struct {
	Write  bool
	Object Object
	Value  Value // the value that was read or written
	// Version of a write orders the writes to the object by their versions; 0: the order
	// follows from what the transaction has read.
	Version uint64
	// Absent of a write means that it deletes the object; of a read, that the object was
	// absent, whichever transaction deleted it. Such a read has no value, and is its
	// transaction's only operation. An object that was never written is absent.
	Absent bool
}

// A Transaction is one attempt, as its client saw it.
type Transaction struct {
	Label   string // name for reports; may be empty
	Start   int64  // a time before the first operation, on a clock that all transactions share
	End     int64  // a time after the outcome was known; ignored if the outcome is Unknown
	Outcome Outcome
	Shown   bool // set if the transaction aborted, but its reads were shown to somebody
	Ops     []Op
}

// Options of a check.
type Options struct {
	// Opacity checks the reads of aborted transactions, too.
	Opacity bool
	// IgnoreTime checks serializability only, not strict serializability.
	IgnoreTime bool
	// Name names objects in reports; nil prints their number.
	Name func(Object) string
}

// describe returns a transaction as one line of text.
func (c *checker) describe(i int) string {
	t := &c.txs[i]
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v, from %d", c.name(i), t.Outcome, t.Start)
	if t.Outcome != Unknown {
		fmt.Fprintf(&b, " to %d", t.End)
	}
	const opsMax = 16
	for n, op := range t.Ops {
		if n == opsMax {
			fmt.Fprintf(&b, " ... and %d more", len(t.Ops)-n)
			break
		}
		verb := " read"
		switch {
		case op.Write && op.Absent:
			verb = " deleted"
		case op.Write:
			verb = " wrote"
		case op.Absent:
			fmt.Fprintf(&b, " found no %s", c.object(op.Object))
			continue
		}
		fmt.Fprintf(&b, "%s %s=%d", verb, c.object(op.Object), op.Value)
	}
	return b.String()
}

// name returns the name of a transaction for reports.
func (c *checker) name(i int) string {
	if l := c.txs[i].Label; l != "" {
		return fmt.Sprintf("T%d(%s)", i, l)
	}
	return fmt.Sprintf("T%d", i)
}

func (c *checker) object(o Object) string {
	if c.options.Name != nil {
		return c.options.Name(o)
	}
	return fmt.Sprintf("#%d", uint64(o))
}
