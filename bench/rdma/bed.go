package rdma

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// A bed is the set-up in which one row is measured.
type bed struct {
	provider provider
	turn     time.Duration
	row      *Row
}

// two measures one worker whose load goes to one other machine.
func (b *bed) two(l load) error { return b.load(2, 1, largest, func() load { return l }) }

// load measures several workers at the same time, each with a load of its own.
func (b *bed) load(machines, workers int, bytes int64, newLoad func() load) error {
	return b.withNetwork(machines, bytes, func(w *network) error {
		all, loads := make([]*worker, workers), make([]load, workers)
		for i := range all {
			var err error
			if all[i], err = newWorker(w.nics[0], i); err != nil {
				return err
			}
			if loads[i] = newLoad(); loads[i].batch < 1 || loads[i].wanted < 1 {
				return fmt.Errorf("%w: %+v", ErrConfig, loads[i])
			}
			for _, nic := range w.nics[1:] { // the sibling workers, whose bells are rung
				if _, err := nic.Open(i, nil); err != nil {
					return err
				}
			}
			if _, err := all[i].run(loads[i], b.turn/10); err != nil { // establishes the connections, and is not measured
				return err
			}
		}
		return b.row.time(w, func() (uint64, error) { return together(all, loads, b.turn) })
	})
}

// together runs all workers at once.
func together(all []*worker, loads []load, turn time.Duration) (uint64, error) {
	var running sync.WaitGroup
	var total atomic.Uint64
	errs := make([]error, len(all))
	for i, w := range all {
		running.Go(func() {
			n, err := w.run(loads[i], turn)
			total.Add(n)
			errs[i] = err
		})
	}
	running.Wait()
	return total.Load(), errors.Join(errs...)
}

// withNetwork runs f with a new network of machines, which have this number of bytes of memory each, and
// closes the network.
func (b *bed) withNetwork(machines int, bytes int64, f func(w *network) error) (err error) {
	w, err := newNetwork(b.provider, machines, bytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return f(w)
}

// datagrams measures SENDs, one at a time: each is sent when the one before has arrived, or has
// been given up.
func (b *bed) datagrams(bytes int) error {
	if bytes > rdma.DatagramBytesMax {
		return errNone
	}
	return b.withNetwork(2, largest, func(w *network) error {
		came := make(chan struct{}, 1)
		w.nics[1].Datagrams(func(rdma.MachineID, []byte) {
			select {
			case came <- struct{}{}:
			default: // a datagram that was given up has come late, and is counted in place of this one
			}
		})
		one := func() error {
			if err := w.nics[0].Datagram(1, make([]byte, bytes)); err != nil {
				return fmt.Errorf("bench/rdma: %w", err)
			}
			select {
			case <-came:
			case <-time.After(lostAfter):
				b.row.Lost++
			}
			return nil
		}
		for range 3 { // the first datagrams are lost until the machines are connected
			if err := one(); err != nil {
				return err
			}
		}
		b.row.Lost = 0
		return b.row.time(w, func() (n uint64, err error) {
			for end := time.Now().Add(b.turn); time.Now().Before(end) && err == nil; n++ {
				err = one()
			}
			return n - b.row.Lost, err
		})
	})
}

// lostAfter is the time after which a datagram is given up.
const lostAfter = 200 * time.Millisecond

// errNone means that a provider has no such operation: the row is left out.
var errNone = errors.New("bench/rdma: no such operation")
