package change

import (
	"io"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// The source of a statement that reads several tables is read whole, once, also if another node
// is built in its place.
func TestReadSource(t *testing.T) {
	ctx := gms.NewEmptyContext()
	left, right := plan.NewResolvedDualTable(), plan.NewResolvedDualTable()
	var s Statement
	s.ReadSource(ctx, plan.NewDeleteFrom(left, nil, false))
	if s.IsWhole(left) || s.TakeWhole(left) {
		t.Error("a single table is read whole")
	}
	join, other := plan.NewCrossJoin(left, right), plan.NewCrossJoin(right, left)
	s.ReadSource(ctx, plan.NewDeleteFrom(join, nil, false))
	if !s.IsWhole(join) || s.IsWhole(other) || s.IsWhole(left) {
		t.Error("not the join is read whole")
	}
	s.Replace(left, right)
	s.Replace(join, other)
	if s.IsWhole(join) || !s.TakeWhole(other) || s.TakeWhole(other) {
		t.Error("the node in the join's place is not read whole, or twice")
	}
}

// A counted counts the rows that are read of it.
type counted struct {
	gms.RowIter
	read int
}

func (c *counted) Next(ctx *gms.Context) (gms.Row, error) {
	row, err := c.RowIter.Next(ctx)
	if err == nil {
		c.read++
	}
	return row, err
}

func TestWhole(t *testing.T) {
	ctx := gms.NewEmptyContext()
	source := &counted{RowIter: gms.RowsToRowIter(gms.NewRow(1), gms.NewRow(2), gms.NewRow(3))}
	rows := Whole(source)
	for n := 1; n <= 3; n++ {
		row, err := rows.Next(ctx)
		if err != nil || row[0] != n || source.read != 3 {
			t.Errorf("row %d is %v, %v; %d are read", n, row, err, source.read)
		}
	}
	if _, err := rows.Next(ctx); err != io.EOF {
		t.Errorf("after the last row: %v", err)
	}
}
