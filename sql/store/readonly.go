package store

import (
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// Writers says who may change anything on this machine, by the variables read_only and
// super_read_only; it is kept beside them, for whoever writes to look at.
var Writers atomic.Uint32

const (
	WritersAll uint32 = iota
	// WritersSuper: users with the SUPER privilege (read_only).
	WritersSuper
	// WritersNobody (super_read_only).
	WritersNobody
)

// Writable says why a statement may not change anything in its transaction, if so.
func (tr *Transaction) Writable(ctx *gms.Context, st *Store) error {
	if tr.ReadOnly {
		return myerr.ReadOnly.New()
	}
	return st.writableBy(ctx)
}

// committable says why a transaction that has changed something may not commit, if so: the
// variables may have been set since.
func (tr *Transaction) committable(ctx *gms.Context, st *Store) error {
	if tr.Tx.Written() == 0 {
		return nil
	}
	return st.writableBy(ctx)
}

// writableBy says why the context's session may not change anything, if so.
func (st *Store) writableBy(ctx *gms.Context) error {
	option := "--super-read-only"
	switch Writers.Load() {
	case WritersAll:
		return nil
	case WritersSuper:
		if st.cfg.IsSuper(ctx) {
			return nil
		}
		option = "--read-only"
	}
	return myerr.OptionPrevents.New(option)
}
