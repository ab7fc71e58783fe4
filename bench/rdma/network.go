package rdma

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// key is the key of every machine's memory.
const key rdma.Key = 1

// pageBytes is the distance between the words that join writes, so that the kernel allocates all
// pages before they are measured.
const pageBytes = 4096

// A network is a set of machines that have joined.
type network struct {
	nics   []rdma.NIC
	memory []*nvram.Memory
	shut   func() error
}

// newNetwork joins machines 0 to n-1. Each has this number of bytes of memory.
func newNetwork(p provider, n int, bytes int64) (_ *network, err error) {
	join, shut, err := p.open()
	if err != nil {
		return nil, fmt.Errorf("bench/rdma: %s: %w", p.name, err)
	}
	w := &network{shut: shut}
	for m := range n {
		if err := w.join(join, rdma.MachineID(m), bytes); err != nil {
			return nil, errors.Join(fmt.Errorf("bench/rdma: %s: machine %d: %w", p.name, m, err), w.close())
		}
	}
	return w, nil
}

func (w *network) join(join func(rdma.MachineID) (rdma.NIC, error), m rdma.MachineID, bytes int64) error {
	nic, err := join(m)
	if err != nil {
		return err
	}
	w.nics = append(w.nics, nic)
	memory, err := nvram.NewShared(bytes)
	if err != nil {
		return err
	}
	for off := uint64(0); off < memory.Size(); off += pageBytes {
		memory.Store(off, 0)
	}
	w.memory = append(w.memory, memory)
	return nic.Register(key, memory)
}

// counts returns the sum of the machines' counts; zero if the provider does not count.
func (w *network) counts() (c rdma.Counts) {
	for _, nic := range w.nics {
		if counter, ok := nic.(rdma.Counter); ok {
			c = c.Add(counter.Counts())
		}
	}
	return c
}

func (w *network) close() error {
	var errs []error
	for _, nic := range w.nics {
		errs = append(errs, nic.Close())
	}
	return errors.Join(append(errs, w.shut())...)
}
