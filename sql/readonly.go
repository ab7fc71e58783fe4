package sql

import (
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
)

// writers says who may change anything on this machine, by the variables read_only and
// super_read_only; it is kept beside them, for whoever writes to look at.
var writers atomic.Uint32

const (
	writersAll uint32 = iota
	// writersSuper: users with the SUPER privilege (read_only).
	writersSuper
	// writersNobody (super_read_only).
	writersNobody
)

// writable says why a statement may not change anything in its transaction, if so.
func (tr *transaction) writable(ctx *gms.Context, st *Store) error {
	if tr.readOnly {
		return myerr.ReadOnly.New()
	}
	return st.writableBy(ctx)
}

// committable says why a transaction that has changed something may not commit, if so: the
// variables may have been set since.
func (tr *transaction) committable(ctx *gms.Context, st *Store) error {
	if tr.tx.Written() == 0 {
		return nil
	}
	return st.writableBy(ctx)
}

// writableBy says why the context's session may not change anything, if so.
func (st *Store) writableBy(ctx *gms.Context) error {
	option := "--super-read-only"
	switch writers.Load() {
	case writersAll:
		return nil
	case writersSuper:
		if st.cfg.IsSuper(ctx) {
			return nil
		}
		option = "--read-only"
	}
	return myerr.OptionPrevents.New(option)
}
