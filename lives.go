package farmsql

import "sync/atomic"

// A listener holds the function to call after a reconfiguration; it may be set later.
type listener struct{ f atomic.Pointer[func()] }

func (l *listener) tell() {
	if f := l.f.Load(); f != nil {
		(*f)()
	}
}

// watchLives makes each machine's catalog look for orphans after each reconfiguration that the
// machine has led. Orphans are objects that departed machines did not free.
func (db *DB) watchLives() {
	for i, m := range db.instance.members {
		livesChanged := db.catalogs[i].LivesChanged
		db.instance.reconfigured[m.ID()].f.Store(&livesChanged)
		livesChanged() // called once for changes since the catalog was opened
	}
}
