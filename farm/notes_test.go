package farm

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
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
		if isUpTo(in, notePrefix, name) != want {
			t.Errorf("%q is of a recovery that is over in configuration %d: %v", name, in, !want)
		}
	}
	for _, other := range []string{m.lifeLogName(12, 0), m.relogName(1, 2, 3), parkedName(12, 0), notePrefix, notePrefix + "x-1-2"} {
		if isUpTo(100, notePrefix, other) {
			t.Errorf("%q is taken for notes", other)
		}
	}
}

// Folders have rules for names that memory on the heap does not need: a log made in place
// of one that recovery still needs had a name with a dot, and could not be made on
// machines that are processes.
func TestNamesOfMemories(t *testing.T) {
	m := new(Member)
	for _, name := range []string{
		m.lifeLogName(12, 3), m.relogName(12, 3, 0), m.relogName(12, 3, 1), m.noteName(12, 3), parkedName(12, 3), regionName(12), pieceName(0), pieceName(1),
	} {
		if err := nvram.CheckName(name); err != nil {
			t.Error(err)
		}
	}
	if m.relogName(1, 2, 0) == m.relogName(1, 2, 1) || m.relogName(1, 2, 1) == m.relogName(1, 21, 0) {
		t.Error("two logs of one name")
	}
}
