package explain

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/internal/clock"
)

// A stepping clock is a millisecond later each time it is asked.
type stepping struct {
	clock.System
	now time.Time
}

func (s *stepping) Now() time.Time {
	s.now = s.now.Add(time.Millisecond)
	return s.now
}

// A twice builds each node as two rows, and fails where it is told to.
type twice struct {
	m      *Measuring
	failed error
}

func (b *twice) Build(ctx *gms.Context, n gms.Node, row gms.Row) (gms.RowIter, error) {
	if b.m.Measures(n) {
		return b.m.Build(ctx, n, row)
	}
	if b.failed != nil {
		return nil, b.failed
	}
	return gms.RowsToRowIter(gms.NewRow(1), gms.NewRow(2)), nil
}

func newMeasuring(failed error) *Measuring {
	b := &twice{failed: failed}
	b.m = NewMeasuring(&stepping{}, b)
	return b.m
}

// A node that has run is shown with its times and rows; one that has not says so.
func TestMeasuring(t *testing.T) {
	ctx := gms.NewEmptyContext()
	root := plan.NewLimit(expression.NewLiteral(int64(2), types.Int64), plan.NewResolvedDualTable())
	rows, err := newMeasuring(nil).Run(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for {
		row, err := rows.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, row[0].(string))
	}
	text := strings.Join(lines, "\n")
	// Built in one step; each row, and the end, is another.
	if !strings.Contains(text, "(actual time=2.000..4.000 rows=2 loops=1)") || strings.Count(text, "(never executed)") != 1 {
		t.Errorf("%s", text)
	}
}

// A plan that fails has no text.
func TestMeasuringOfFailure(t *testing.T) {
	failed := errors.New("failed")
	if rows, err := newMeasuring(failed).Run(gms.NewEmptyContext(), plan.NewResolvedDualTable()); !errors.Is(err, failed) || rows != nil {
		t.Errorf("%v, %v", rows, err)
	}
}

// Without EXPLAIN ANALYZE nothing is measured.
func TestNoMeasuring(t *testing.T) {
	if (*Measuring)(nil).Measures(plan.NewResolvedDualTable()) {
		t.Error("a node is measured")
	}
}
