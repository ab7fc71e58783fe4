package farmsql

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
)

// A Report holds the results of Check.
type Report struct {
	Machines int
	Objects  int // how many are in use
	// Dropped is how many further objects belong to dropped tables and indexes that are still being
	// freed.
	Dropped  int
	Problems []string
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

func (r Report) String() string {
	var sb strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&sb, "%s\n", p)
	}
	found := "all is well"
	if !r.OK() {
		found = count(len(r.Problems), "problem")
	}
	dropped := ""
	if r.Dropped > 0 {
		dropped = fmt.Sprintf(", and %d being dropped,", r.Dropped)
	}
	fmt.Fprintf(&sb, "%s%s on %s: %s\n", count(r.Objects, "object"), dropped, count(r.Machines, "machine"), found)
	return sb.String()
}

// count returns a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Check walks the catalog, every index and row, and every region, and reports leaks, orphans,
// overlaps, locks left behind, replicas that differ, and index entries without their rows. It also
// counts objects of dropped tables that are not freed yet, and delays their freeing until it returns.
// Nobody may write meanwhile. The Report has the problems found; the error says that the walk itself
// failed. If a folder that was opened with Config.Trust is sound, it can be opened without Trust from
// then on.
func (db *DB) Check(ctx context.Context) (Report, error) {
	for _, c := range db.catalogs {
		defer c.PauseSweeping()()
	}
	r := Report{Machines: db.Machines()}
	reached, isWhole, err := db.walk(ctx, &r)
	if err != nil {
		return r, err
	}
	faults, err := db.instance.check(ctx, slices.Values(reached))
	if err != nil {
		return r, withPrefix("", err)
	}
	unreached := 0
	for _, f := range faults {
		if f.Kind == region.Leak && !isWhole { // maybe no leak: the walk could not reach everything
			unreached++
			continue
		}
		r.Problems = append(r.Problems, f.String())
	}
	if unreached > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%s not reached, for what leads to them is damaged: see above; leaks were not looked for", count(unreached, "object")))
	}
	if r.OK() {
		err = db.instance.markChecked()
	}
	return r, err
}

// Inspect checks every object in the memory of all machines of an instance, without opening a
// database on it. The instance must not be running, and must be one without Cluster. Errors are
// farm.ErrTorn, with the places, ErrOtherFolder, and the errors of nvram.HoldFolder. A missing folder
// is not an error.
func Inspect(ctx context.Context, o Offline) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := (Config{Folder: o.Data[0]}).checkFolder(); err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(o.Data[0], machinePrefix+"*"))
	if err != nil {
		return ours(err)
	}
	for _, f := range folders {
		if err := farm.Inspect(ctx, f, nvram.Options{Trust: o.Trust}); err != nil {
			return ours(err)
		}
	}
	return nil
}

// walk returns the objects that the catalog and the indexes lead to, and adds problems to r. isWhole
// is false if there may be more objects, because the walk could not go on beyond a damaged one.
func (db *DB) walk(ctx context.Context, r *Report) (reached []region.Ptr, isWhole bool, err error) {
	object := func(p region.Ptr) error {
		reached = append(reached, p)
		return ctx.Err()
	}
	dropped := func(p region.Ptr) error {
		r.Dropped++
		return object(p)
	}
	isWhole = true
	for _, err := range []error{
		db.engines[0].Check(ctx, db.instance.root(), object, dropped),
		db.checkNatives(ctx, object),
	} {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			r.Problems = append(r.Problems, tornBy(err).Error())
			isWhole = false
		}
	}
	r.Objects = len(reached) - r.Dropped
	return reached, isWhole, nil
}
