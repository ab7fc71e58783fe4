package farm

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
)

// The memory of notes is a log to the next life, and goes with the recovery that it is of.
func TestNotesGo(t *testing.T) {
	m, next := &Member{}, &Member{}
	m.cfg.Self.Incarnation, next.cfg.Self.Incarnation = 1<<63+5, 9
	name := m.noteName(12, 3)
	if m.isOldLog(name) || !next.isOldLog(name) {
		t.Errorf("%q is an old log of its own life (%v), of the next (%v)", name, m.isOldLog(name), next.isOldLog(name))
	}
	for in, want := range map[cluster.ID]bool{11: false, 12: true, 13: true} {
		if isOldNote(name, in) != want {
			t.Errorf("%q is of a recovery that is over in configuration %d: %v", name, in, !want)
		}
	}
	for _, other := range []string{m.lifeLogName(12, 0), m.relogName(1, 2, 3), parkedName(12, 0), notePrefix, notePrefix + "x-1-2"} {
		if isOldNote(other, 100) {
			t.Errorf("%q is taken for notes", other)
		}
	}
}
