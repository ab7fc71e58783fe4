package fast

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/exec"
	"github.com/farmsql/farmsql/sql/store"
)

// A Session is the part of a client's session that compiled statements need. The sessions that
// go-mysql-server gets embed one. It is used by one goroutine at a time.
type Session struct {
	store.Session
	// self is the session in contexts; it embeds this one.
	self  gms.Session
	cache *Cache
	// key and values are buffers for the key and the literals of the running
	// statement.
	key    []byte
	values []Value
	// allowed has statements that the user may run. grants is the version of the privileges for which
	// that holds.
	allowed []*Compiled
	grants  uint64
	// leaf holds the rows that replace a node of the running plan.
	leaf *leaf
	// room is the buffer of direct SELECTs.
	room directRoom
	// packets is the buffer of rows in packets.
	packets exec.Packets
	// PlanOnly turns this package off: go-mysql-server runs everything.
	PlanOnly bool
}

// Init initializes s for self, the session of a new client.
func (s *Session) Init(cache *Cache, self gms.Session, server string, c gms.Client, id uint32) {
	s.Session.Init(cache.st, server, c, id)
	s.self, s.cache = self, cache
}
