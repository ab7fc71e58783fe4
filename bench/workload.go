package bench

import (
	"context"
	"errors"
	"time"
)

// A Workload is a benchmark: data, a mix of transactions on them, and the conditions that the
// data must satisfy after any run. It is made for one Target. If the target's machines are
// processes, each has a Workload, and Load is called in all of them, to load what is there to
// be loaded (Target.Has, IsMine, Leads, Barrier).
type Workload interface {
	// Name is what the benchmark is called, and Scale how large its data are.
	Name() string
	Scale() Scale
	// Kinds names the kinds of transactions. Client.Do returns an index.
	Kinds() []string
	// Load fills the empty database.
	Load(ctx context.Context, p *Progress) error
	// Attach finds what Load has made, in the place of Load, at a machine that joins
	// others later.
	Attach(ctx context.Context) error
	// NewClient returns the client of one thread, which uses no other's state.
	NewClient(ctx context.Context, th *Thread) (Client, error)
	// Check returns an error if the data are not consistent, or not what the
	// clients have made of them. No client is at work then. It is called in one of
	// the processes.
	Check(ctx context.Context) error
}

// A Scale is how large a workload's data are: so many of the unit, which is plural.
type Scale struct {
	N    int    `json:"n"`
	Unit string `json:"unit"`
}

// A Client runs transactions, one at a time.
type Client interface {
	// Do draws a transaction from the mix and runs it to its end, again after each
	// conflict. It returns the kind, and nil, ErrMiss, or an error that ends the
	// run.
	Do(ctx context.Context) (kind int, err error)
	// Close gives back what the client holds.
	Close() error
}

// ErrMiss means that a transaction has ended as its specification foresees without
// doing its work: there is no such row, or it had to be rolled back.
var ErrMiss = errors.New("bench: the transaction has nothing to do")

// ErrInconsistent is wrapped by the errors of Check.
var ErrInconsistent = errors.New("bench: data are inconsistent")

// A Thread is what a client knows of the goroutine that it is for.
type Thread struct {
	// Index counts from 0, over all machines. Seed is drawn from the run's, and
	// differs by thread.
	Index int
	Seed  uint64
	// Machine is that at which the client runs; it is in this process.
	Machine int
	// Number counts from 1, over all runs.
	Number uint32
	// Now is when Client.Do was called, since the run began. Of the transactions that
	// have ended in Do, Together is how many they are, and Began when the first of them
	// began. The client sets them if they are more than one, or began before Do did. Each
	// counts as having taken until Do has returned.
	Now, Began time.Duration
	Together   int

	aborts map[string]uint64
}
