package farmsql

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/catalog"
)

// A listener is told that a configuration has been recovered for, once there is one.
type listener struct{ f atomic.Pointer[func()] }

func (l *listener) tell() {
	if f := l.f.Load(); f != nil {
		(*f)()
	}
}

// livesOf returns the lives that machine i of this process is to know of.
func (db *DB) livesOf(i int) catalog.Lives {
	if l, ok := db.instance.(*lone); ok {
		return l.member.Lives()
	}
	return catalog.Together(db.lives, i)
}

// inheritWhenChanged has the catalog look for what other machines have left behind each
// time that this one has led a reconfiguration.
func (db *DB) inheritWhenChanged() {
	l, ok := db.instance.(*lone)
	if !ok {
		return
	}
	inherit := db.catalogs[0].Inherit
	l.reconfigured.f.Store(&inherit)
	inherit() // what has changed since the catalog was opened
}
