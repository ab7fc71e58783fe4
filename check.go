package farmsql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/region"
)

// A Report says what Check found.
type Report struct {
	Machines int
	Objects  int // in use
	Problems []string
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems) == 0 }

func (r Report) String() string {
	var sb strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&sb, "%s\n", p)
	}
	if r.OK() {
		fmt.Fprintf(&sb, "%d objects on %d machines: all is well\n", r.Objects, r.Machines)
	} else {
		fmt.Fprintf(&sb, "%d objects on %d machines: %d problems\n", r.Objects, r.Machines, len(r.Problems))
	}
	return sb.String()
}

// Check walks the catalog, every index and row, and every region, and reports
// leaks, orphans, overlaps, locks left behind, replicas that differ and index
// entries without their rows. Nothing may be written meanwhile. The error is
// about the walk itself, not about what it found.
func (db *DB) Check(ctx context.Context) (Report, error) {
	r := Report{Machines: db.Machines()}
	var reached []region.Ptr
	object := func(p region.Ptr) error {
		reached = append(reached, p)
		return ctx.Err()
	}
	for _, err := range []error{
		db.engines[0].Check(ctx, db.instance.Root(), object),
		db.checkNatives(ctx, object),
	} {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err != nil {
			r.Problems = append(r.Problems, err.Error())
		}
	}
	r.Objects = len(reached)
	faults, err := db.instance.Check(slices.Values(reached))
	if err != nil {
		return r, fmt.Errorf("farmsql: %w", err)
	}
	for _, f := range faults {
		r.Problems = append(r.Problems, f.String())
	}
	return r, nil
}
