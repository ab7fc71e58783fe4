package txn

import (
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
)

// forgetVersions replaces each version that was read with the object's present version.
func (s *state) forgetVersions() {
	for i := range s.writes.Entries {
		if e := &s.writes.Entries[i]; e.Op != record.OpAlloc && !e.Dead {
			if _, v, err := s.fetch(e.Ptr); err == nil {
				e.Version = v
			}
		}
	}
}

// applyOwnBackupsLocked applies the writes to this machine's backups.
func (s *state) applyOwnBackupsLocked() {
	for _, e := range s.commit.writes {
		wr := e.Write()
		if rt := s.m.Route(e.Ptr.Addr.Region()); !rt.PrimaryHere && rt.Local != nil {
			_ = participant.ApplyReplica(rt.Local, &wr)
		}
	}
}
