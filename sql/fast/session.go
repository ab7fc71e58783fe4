package fast

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/store"
)

// A Session is what compiled statements need of a client's session. The sessions that
// go-mysql-server knows embed one. It belongs to one goroutine at a time.
type Session struct {
	store.Session
	// self is the session that contexts have, which embeds this one.
	self  gms.Session
	cache *Cache
	// key and values are memory for the key and the literals of the statement at work.
	key    []byte
	values []Value
	// allowed are statements that the user may run, and grants under which grants.
	allowed []*Compiled
	grants  uint64
	// leaf are the rows that stand for a node of the plan at work.
	leaf *leaf
	// room is memory for rows that need no values.
	room directRoom
	// PlanOnly has go-mysql-server run everything.
	PlanOnly bool
}

// Init makes s what compiled statements need of self, the session of a new client.
func (s *Session) Init(cache *Cache, self gms.Session, server string, c gms.Client, id uint32) {
	s.Session.Init(cache.st, server, c, id)
	s.self, s.cache = self, cache
}
