package farm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
)

// An annex is memory of its own, beside the logs, for the writes of a large transaction's record:
// see worker.Config.Annex. The memory is named after the annex's number. Two lives of a machine
// never use the same number, so an annex that exists when a machine starts belongs to an earlier
// life.

const annexPrefix = "annex-"

func annexName(number uint64) string { return fmt.Sprintf("%s%014x", annexPrefix, number) }

// annexOf returns the annex number in the name of a memory.
func annexOf(name string) (number uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, annexPrefix)
	number, err := strconv.ParseUint(digits, 16, 56)
	return number, ok && err == nil
}

// makeAnnex makes an annex with storage for all of it, so that a store to it never finds the file
// system full.
func makeAnnex(in memories, number uint64, bytes int64) (*nvram.Memory, error) {
	mem, err := in.Map(annexName(number), bytes)
	if err != nil {
		return nil, err
	}
	if err := mem.Reserve(0, mem.Size()); err != nil {
		return nil, errors.Join(err, in.Remove(annexName(number)))
	}
	return mem, nil
}

// dropAnnex frees an annex. It discards the storage before it removes the file, because a removed
// file keeps its storage while any peer still has the file mapped.
func dropAnnex(in memories, number uint64, memory *nvram.Memory) error {
	memory.Discard(0, memory.Size())
	return in.Remove(annexName(number))
}

// openAnnexes maps the annexes of earlier lives, by number.
func openAnnexes(in memories) (map[uint64]*nvram.Memory, error) {
	names, err := in.Names()
	if err != nil {
		return nil, err
	}
	all := make(map[uint64]*nvram.Memory)
	for _, name := range names {
		number, ok := annexOf(name)
		if !ok {
			continue
		}
		size, err := in.MemorySize(name)
		if err != nil {
			return nil, err
		}
		if size == 0 { // a crash came before the file got its size
			if err := in.Remove(name); err != nil {
				return nil, err
			}
			continue
		}
		if all[number], err = in.Map(name, size); err != nil {
			return nil, fmt.Errorf("farm: an annex of an earlier life: %w", err)
		}
	}
	return all, nil
}

// dropAnnexes frees annexes of earlier lives.
func dropAnnexes(in memories, all map[uint64]*nvram.Memory) error {
	var errs []error
	for _, number := range slices.Sorted(maps.Keys(all)) {
		errs = append(errs, dropAnnex(in, number, all[number]))
	}
	return errors.Join(errs...)
}

// awaitNoAnnexes waits until the machine's background work has freed all annexes. It returns an
// error if some remain after closePatience. No transaction may be in progress on the machine.
func (m *machine) awaitNoAnnexes(c clock.Clock) error {
	for end := c.Now().Add(closePatience); ; c.Sleep(time.Millisecond) {
		names, err := m.memory.Names()
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, annexPrefix) })
		n := m.txn.Annexes()
		if n == 0 && len(names) == 0 {
			return nil
		}
		if c.Now().After(end) {
			return fmt.Errorf("farm: machine %d has %d annexes though nothing is under way, in memory %v", m.id, n, names)
		}
	}
}

// takeOldAnnexes returns the annexes of earlier lives for the caller to free, and forgets them.
// isOver says that recovery needs them no more; otherwise takeOldAnnexes returns nil.
func (m *Member) takeOldAnnexes(isOver bool) (all map[uint64]*nvram.Memory) {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	if isOver {
		all, m.oldAnnexes = m.oldAnnexes, nil
	}
	return all
}
