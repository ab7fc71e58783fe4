package farmsql

import (
	"sync/atomic"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/rdma"
)

// processLives are the lives of the machines of one process, which begin and end
// together. The first machine leads.
type processLives struct {
	all  []uint32
	self int
}

var _ catalog.Lives = processLives{}

func (l processLives) Own() uint32 { return l.all[l.self] }
func (l processLives) Leads() bool { return l.self == 0 }

func (l processLives) Has(life uint32) bool {
	for _, x := range l.all {
		if x == life {
			return true
		}
	}
	return false
}

// Own implements catalog.Lives: a life is an incarnation of a member.
func (l *lone) Own() uint32 { return lifeOf(l.incarnation) }

// Has implements catalog.Lives.
func (l *lone) Has(life uint32) bool {
	for _, incarnation := range l.member.Membership().Configuration().Incarnation {
		if lifeOf(incarnation) == life {
			return true
		}
	}
	return false
}

// Leads implements catalog.Lives: the CM does.
func (l *lone) Leads() bool {
	return l.member.Membership().Configuration().CM == rdma.MachineID(l.machine)
}

// lifeOf has 32 bits of an incarnation, which is random.
func lifeOf(incarnation uint64) uint32 { return uint32(incarnation ^ incarnation>>32) }

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
		return l
	}
	return processLives{db.lives, i}
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
