package trigger

import (
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

var _ compat.Memory = (*held)(nil)

// A held counts the memory that one UPDATE or DELETE of a join holds. A trigger may run many such statements within a
// client's statement, so each gives its memory back when it is over.
type held struct {
	*store.Holding
	bytes int64
}

// Take implements compat.Memory.
func (h *held) Take(n int64) error {
	err := h.Holding.Take(n)
	if err == nil {
		h.bytes += n
	}
	return err
}

// Give implements compat.Memory.
func (h *held) Give(n int64) {
	h.Holding.Give(n)
	h.bytes -= n
}

// free gives back everything.
func (h *held) free() { h.Give(h.bytes) }
