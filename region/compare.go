package region

import (
	"errors"
	"fmt"
)

// differs is the beginning of the text of each fault of a backup.
const differs = "differs from the primary"

// Compare compares the objects of a backup with the objects of its primary r, and returns the
// faults of the backup. It does not compare line versions, which only remote reads use: Sound
// checks them. No transaction may run.
func (r *Region) Compare(backup *Region) []Fault {
	var fs faults
	for p, h := range r.Objects {
		if err := r.sameObject(backup, p, h); err != nil {
			fs.add(Damaged, p, "%v", err)
		}
	}
	return fs
}

// sameObject compares one slot. Free slots, used before or not, have only a header and an
// incarnation to compare: if the backup becomes the primary, the next object in the slot must not
// be mistaken for an earlier one.
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
