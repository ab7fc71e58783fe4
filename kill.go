//go:build drills

package farmsql

// Kill ends a machine of this process, counted from 0, as if its process were killed. Its operations
// in progress and all later ones fail; the other machines go on without it, if there are enough of
// them. The machine comes back when the database is opened again. Kill exists only in builds with the
// tag drills.
func (db *DB) Kill(machine int) error {
	if db.hasOtherProcesses() {
		return ErrOtherProcesses
	}
	db.instance.killed.Store(true)
	return db.instance.local.Kill(machine)
}
