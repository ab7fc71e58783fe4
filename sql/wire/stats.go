package wire

import (
	"fmt"
	"sync/atomic"
)

// Stats counts what a server did since it was created.
type Stats struct {
	Statements uint64 // attempts to run a statement, retries included
	Compiled   uint64 // attempts that ran compiled
	Planned    uint64 // attempts that ran by plans of our own; go-mysql-server ran the others
	Conflicts  uint64 // attempts that ended in a conflict
	Retries    uint64 // attempts repeated after a conflict, unseen by the client
	Failed     uint64 // statements that ended in another error
}

// Sub returns the difference to an earlier snapshot.
func (s Stats) Sub(earlier Stats) Stats {
	return Stats{
		Statements: s.Statements - earlier.Statements,
		Compiled:   s.Compiled - earlier.Compiled,
		Planned:    s.Planned - earlier.Planned,
		Conflicts:  s.Conflicts - earlier.Conflicts,
		Retries:    s.Retries - earlier.Retries,
		Failed:     s.Failed - earlier.Failed,
	}
}

func (s Stats) String() string {
	return fmt.Sprintf("statements %d, compiled %d, planned %d, conflicts %d, retries %d, failed %d", s.Statements, s.Compiled, s.Planned, s.Conflicts, s.Retries, s.Failed)
}

type counters struct {
	statements, compiled, planned, conflicts, retries, failed atomic.Uint64
	aborted                                                   atomic.Uint64 // clients that could not be authenticated
}

// Stats returns the server's counters.
func (s *Server) Stats() Stats {
	return Stats{
		Statements: s.stats.statements.Load(),
		Compiled:   s.stats.compiled.Load(),
		Planned:    s.stats.planned.Load(),
		Conflicts:  s.stats.conflicts.Load(),
		Retries:    s.stats.retries.Load(),
		Failed:     s.stats.failed.Load(),
	}
}
