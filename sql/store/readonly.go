package store

import (
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// Writers says which users may change anything on this machine. It follows the variables
// read_only and super_read_only, and every writing statement checks it.
var Writers atomic.Uint32

const (
	WritersAll uint32 = iota
	// WritersSuper: users with the SUPER privilege (read_only).
	WritersSuper
	// WritersNobody: no user (super_read_only).
	WritersNobody
)

// Writable returns an error if a statement may change nothing in its transaction.
func (tr *Transaction) Writable(ctx *gms.Context, st *Store) error {
	if tr.ReadOnly {
		return myerr.ReadOnly.New()
	}
	return st.writableBy(ctx)
}

// committable returns an error if the transaction has changes and its session may change nothing
// now: read_only or super_read_only may have been set since.
func (tr *Transaction) committable(ctx *gms.Context, st *Store) error {
	if tr.Tx.Written() == 0 {
		return nil
	}
	return st.writableBy(ctx)
}

// writableBy returns an error if the context's session may change nothing.
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
