package region

import (
	"errors"
	"fmt"
)

// differs begins the text of a fault of a backup.
const differs = "differs from the primary"

// Compare compares the objects of a backup with the objects of its primary r, and returns what is
// wrong with the backup. Line versions, which only remote reads look at, are for Sound. No
// transaction may run.
func (r *Region) Compare(backup *Region) []Fault {
	var fs faults
	for p, h := range r.Objects {
		if err := r.sameObject(backup, p, h); err != nil {
			fs.add(Damaged, p, "%v", err)
		}
	}
	return fs
}

// sameObject compares one slot. Free slots have only a header and an incarnation to compare: should
// the backup become the primary, the next object there must not be taken for an earlier one. Not
// even slots that never held an object may differ.
func (r *Region) sameObject(backup *Region, p Ptr, h Header) error {
	a, b := make([]byte, p.Capacity()), make([]byte, p.Capacity())
	_, errPrimary := r.ReadObject(p, a)
	hb, errBackup := backup.ReadObject(p, b)
	switch {
	case backup.Header(p.Addr.Offset()) != h:
		return fmt.Errorf("%s: header %v, not %v", differs, backup.Header(p.Addr.Offset()), h)
	case backup.Incarnation(p.Addr.Offset()) != p.Incarnation():
		return fmt.Errorf("%s: incarnation %d, not %d", differs, backup.Incarnation(p.Addr.Offset()), p.Incarnation())
	case !errors.Is(errBackup, errPrimary):
		return fmt.Errorf("%s: read as %v (%v), not %v", differs, errBackup, hb, errPrimary)
	case errPrimary == nil && string(a) != string(b):
		return fmt.Errorf("%s: payload", differs)
	}
	return nil
}
