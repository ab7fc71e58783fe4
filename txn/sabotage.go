package txn

// sabotage leaves steps of the protocol out. Only tests of this package can set
// it, before any transaction runs: they show that the tests of the protocol would
// notice.
var sabotage struct {
	// skipValidation commits whatever has been read.
	skipValidation bool
	// validateFirst validates before it locks.
	validateFirst bool
	// lockAnyVersion locks the version that is there, not the one that was read.
	lockAnyVersion bool
	// forgetAnswers does not ask questions again whose sources have moved.
	forgetAnswers bool
	// skipBackups goes from validation straight to COMMIT-PRIMARY.
	skipBackups bool
}

// forgetVersions makes the versions that were read those that are there.
func (s *state) forgetVersions() {
	for i := range s.writes.entries {
		if e := &s.writes.entries[i]; e.op != OpAlloc && !e.dead {
			if _, v, err := s.fetch(e.ptr); err == nil {
				e.version = v
			}
		}
	}
}
