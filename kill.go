//go:build drills

package farmsql

// Kill ends a machine of this process, counted from 0, as if it were a process that is killed. The
// others go on without it, where there are enough of them; what it had under way fails, and so
// does what is asked of it from then on. It comes back when the database is opened again. It is there
// in builds with the tag drills only.
func (db *DB) Kill(machine int) error {
	if db.hasOtherProcesses() {
		return ErrOtherProcesses
	}
	db.instance.killed.Store(true)
	return db.instance.local.Kill(machine)
}
