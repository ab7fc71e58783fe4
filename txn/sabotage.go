package txn

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
