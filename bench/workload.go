package bench

import (
	"context"
	"errors"
	"time"
)

// A Workload is a benchmark: data, a mix of transactions on them, and the conditions that the
// data must satisfy after any run. It is made for one Target. If the target's machines are
// processes, each has a Workload, and Load is called in all of them, each to load its part
// (Target.Has, IsMine, Leads, Barrier).
type Workload interface {
	// Name is the benchmark's name, and Scale the size of its data.
	Name() string
	Scale() Scale
	// Kinds names the kinds of transactions. Client.Do returns an index into it.
	Kinds() []string
	// Load fills the empty database.
	Load(ctx context.Context, p *Progress) error
	// Attach is called in place of Load at a machine that joins later, and finds the data
	// that Load has created.
	Attach(ctx context.Context) error
	// NewClient returns the client of one thread, which uses no other's state.
	NewClient(ctx context.Context, th *Thread) (Client, error)
	// Check returns an error if the data are inconsistent, or not the result of the clients' work.
	// It is called in one of the processes, and only while no client runs.
	Check(ctx context.Context) error
}

// A Scale is the size of a workload's data: a number of units, with the unit in the plural.
type Scale struct {
	N    int    `json:"n"`
	Unit string `json:"unit"`
}

// A Client runs transactions, one at a time.
type Client interface {
	// Do draws a transaction from the mix, and runs it to its end, retrying it after
	// conflicts. It returns the kind, and nil, ErrMiss, or an error that ends the run.
	Do(ctx context.Context) (kind int, err error)
	// Close gives back what the client holds.
	Close() error
}

// ErrMiss means that a transaction has ended as specified without doing its work: a row does
// not exist, or it had to roll back.
var ErrMiss = errors.New("bench: the transaction has nothing to do")

// ErrInconsistent is wrapped by the errors of Check.
var ErrInconsistent = errors.New("bench: data are inconsistent")

// A Thread is the client's view of its goroutine.
type Thread struct {
	// Index counts from 0, over all machines. Seed is derived from the run's seed, and
	// differs by thread.
	Index int
	Seed  uint64
	// Machine is the client's machine, in this process.
	Machine int
	// Number counts from 1, over all runs.
	Number uint32
	// Began is the time, since the run began, from which the latency of the running transaction
	// counts. In the closed loop it is when Client.Do was called, in the open loop when the
	// transaction arrived.
	Began time.Duration
	// Together is the number of transactions that Client.Do runs together; the latency of each is the
	// time that all of them take. A client sets it if it is not 1.
	Together int

	aborts map[string]uint64
}
