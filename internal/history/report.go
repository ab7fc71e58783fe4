package history

import (
	"errors"
	"fmt"
	"strings"
)

// A Kind is a kind of violation.
type Kind string

const (
	// Malformed: the test recorded something impossible. It is not a statement about
	// the database.
	Malformed Kind = "malformed history"
	// GarbageRead: a transaction read a value that no transaction wrote.
	GarbageRead Kind = "garbage read"
	// DirtyRead: a transaction read a value that only an aborted transaction wrote.
	DirtyRead Kind = "dirty read"
	// IntermediateRead: a transaction read a value that its writer had overwritten
	// itself.
	IntermediateRead Kind = "intermediate read"
	// UnstableRead: a transaction read an object twice and saw different values,
	// or did not see its own write.
	UnstableRead Kind = "unstable read"
	// LostUpdate: two transactions replaced the same version of an object.
	LostUpdate Kind = "lost update"
	// StaleRead: a transaction read a value although another transaction had replaced the value
	// and had ended before the reader began.
	StaleRead Kind = "stale read"
	// FracturedRead: a transaction saw some of another's effects and not others.
	FracturedRead Kind = "fractured read"
	// WriteSkew: each of the transactions read what the next replaced.
	WriteSkew Kind = "write skew"
	// LongFork: readers saw independent writes in different orders.
	LongFork Kind = "long fork"
	// CircularFlow: transactions depend on each other's writes.
	CircularFlow Kind = "circular information flow"
	// FalseAbsence: a lookup found no object where there was one all the time.
	FalseAbsence Kind = "false absence"
	// LostAppend: what a transaction appended to a list is not there.
	LostAppend Kind = "lost append"
	// DoubledAppend: an element is in a list twice.
	DoubledAppend Kind = "doubled append"
	// ForkedList: two transactions read a list, and neither read begins with the other.
	ForkedList Kind = "forked list"
	// TimeTravel: any other contradiction to real time.
	TimeTravel Kind = "contradiction to real time"
)

// A Violation is one reason why a history is not strictly serializable.
type Violation struct {
	Kind Kind
	// Transactions are the indexes of the transactions involved; those of a cycle are in its order.
	Transactions []int
	Text         string // several lines for a cycle
}

func (v Violation) String() string { return string(v.Kind) + ": " + v.Text }

// A Report is the result of a check. The counts let a test assert that its
// history was worth checking.
type Report struct {
	Violations []Violation
	Dropped    int // violations beyond violationsMax

	// Transactions is the number of transactions in the check: the committed ones, unknown ones
	// whose writes were seen, and aborted ones whose reads must be right.
	Transactions int
	Committed    int // according to their clients
	Aborted      int
	Unknown      int
	Objects      int // number of objects that were written
	Dependencies int // number of edges, without those of real time
}

// violationsMax is how many violations a report holds.
const violationsMax = 20

func (r *Report) add(v Violation) {
	if len(r.Violations) == violationsMax {
		r.Dropped++
		return
	}
	r.Violations = append(r.Violations, v)
}

// Err returns nil if the history is strictly serializable, or an error that
// explains why not.
func (r Report) Err() error {
	if len(r.Violations) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "history of %d transactions is not strictly serializable", r.Transactions)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n%v", v)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "\n... and %d more violations", r.Dropped)
	}
	return errors.New(b.String())
}
