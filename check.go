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
	found := "all is well"
	if !r.OK() {
		found = count(len(r.Problems), "problem")
	}
	fmt.Fprintf(&sb, "%s on %s: %s\n", count(r.Objects, "object"), count(r.Machines, "machine"), found)
	return sb.String()
}

// count is a number of things, in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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
