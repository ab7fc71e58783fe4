package txn

import (
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
)

// forgetVersions replaces the versions that were read by the present ones.
func (s *state) forgetVersions() {
	for i := range s.writes.entries {
		if e := &s.writes.entries[i]; e.op != record.OpAlloc && !e.dead {
			if _, v, err := s.fetch(e.ptr); err == nil {
				e.version = v
			}
		}
	}
}

// applyOwnBackupsLocked applies the writes to this machine's backups.
func (s *state) applyOwnBackupsLocked() {
	for _, e := range s.commit.writes {
		wr := e.write()
		if rt := s.m.route(e.ptr.Addr.Region()); !rt.PrimaryHere && rt.Local != nil {
			_ = participant.ApplyReplica(rt.Local, &wr)
		}
	}
}
