package farmsql

import "sync/atomic"

// A listener is told that a configuration has been recovered for, once there is one.
type listener struct{ f atomic.Pointer[func()] }

func (l *listener) tell() {
	if f := l.f.Load(); f != nil {
		(*f)()
	}
}

// inheritWhenChanged has the catalog of each machine look for what other machines have left
// behind each time that this one has led a reconfiguration.
func (db *DB) inheritWhenChanged() {
	for i, m := range db.instance.members {
		inherit := db.catalogs[i].Inherit
		db.instance.reconfigured[m.ID()].f.Store(&inherit)
		inherit() // what has changed since the catalog was opened
	}
}
