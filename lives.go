package farmsql

import "sync/atomic"

// A listener is a function that is called after each recovery; it may be set later.
type listener struct{ f atomic.Pointer[func()] }

func (l *listener) tell() {
	if f := l.f.Load(); f != nil {
		(*f)()
	}
}

// watchLives tells the catalog of each machine, after each reconfiguration that the machine
// has led, to look for orphans: objects that machines which have left did not free.
func (db *DB) watchLives() {
	for i, m := range db.instance.members {
		livesChanged := db.catalogs[i].LivesChanged
		db.instance.reconfigured[m.ID()].f.Store(&livesChanged)
		livesChanged() // what has changed since the catalog was opened
	}
}
