package compat

import (
	"math"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/row"
)

// SUM and AVG of integers and decimals are exact in MySQL. go-mysql-server adds doubles if the
// values come from integers, or in a window, and calls every result a double.

var (
	_ gms.Aggregation               = (*ExactAggregate)(nil)
	_ gms.FunctionExpression        = (*ExactAggregate)(nil)
	_ gms.CollationCoercible        = (*ExactAggregate)(nil)
	_ gms.AggregationBuffer         = (*exactBuffer)(nil)
	_ gms.WindowFunction            = (*exactWindow)(nil)
	_ gms.WindowFunction            = (*doubleWindow)(nil)
	_ gms.WindowAdaptableExpression = (*ExactAggregate)(nil)
)

// MySQL's rules for the types of SUM and AVG.
const (
	sumMoreDigits   = 22
	avgMoreDigits   = 4 // div_precision_increment
	decimalDigits   = types.DecimalTypeMaxPrecision
	decimalScaleMax = types.DecimalTypeMaxScale
)

// An ExactAggregate is SUM or AVG. Its result is a double unless the argument is an integer or
// a decimal.
type ExactAggregate struct {
	Child  gms.Expression // the summed expression
	Avg    bool           // the aggregate is AVG
	window *gms.WindowDefinition
	id     gms.ColumnId
}

// digits returns the precision and scale of an exact number, and false for
// other types.
func digits(t gms.Type) (precision, scale int, exact bool) {
	if d, ok := t.(gms.DecimalType); ok {
		return int(d.Precision()), int(d.Scale()), true
	}
	switch t.Type() {
	case query.Type_INT8, query.Type_UINT8:
		return 3, 0, true
	case query.Type_INT16, query.Type_UINT16:
		return 5, 0, true
	case query.Type_INT24, query.Type_UINT24:
		return 8, 0, true
	case query.Type_INT32, query.Type_UINT32:
		return 10, 0, true
	case query.Type_INT64:
		return 19, 0, true
	case query.Type_UINT64:
		return 20, 0, true
	case query.Type_YEAR:
		return 4, 0, true
	case query.Type_BIT:
		if b, ok := t.(types.BitType); ok {
			return int(b.NumberOfBits()), 0, true
		}
	}
	return 0, 0, false
}

// scale returns the scale of the result, given the scale of the sum.
func (a *ExactAggregate) scale(scale int) int {
	if a.Avg {
		return min(scale+avgMoreDigits, decimalScaleMax)
	}
	return scale
}

func (a *ExactAggregate) exact(ctx *gms.Context) bool {
	_, _, exact := digits(a.Child.Type(ctx))
	return exact
}

// Type implements gms.Expression.
func (a *ExactAggregate) Type(ctx *gms.Context) gms.Type {
	precision, scale, exact := digits(a.Child.Type(ctx))
	if !exact {
		return types.Float64
	}
	more := sumMoreDigits
	if a.Avg {
		more = avgMoreDigits
	}
	t, err := types.CreateDecimalType(uint8(min(precision+more, decimalDigits)), uint8(a.scale(scale)))
	if err != nil {
		return types.InternalDecimalType
	}
	return t
}

func (a *ExactAggregate) name() string {
	if a.Avg {
		return "AVG"
	}
	return "SUM"
}

// String implements gms.Expression.
func (a *ExactAggregate) String() string {
	if a.window == nil {
		return a.name() + "(" + a.Child.String() + ")"
	}
	p := gms.NewTreePrinter()
	_ = p.WriteNode("%s", a.name()) // fails only if the tree has a node already
	_ = p.WriteChildren(a.window.String(), a.Child.String())
	return p.String()
}

// FunctionName implements gms.FunctionExpression.
func (a *ExactAggregate) FunctionName() string { return strings.ToLower(a.name()) }

// IsPlain reports whether the aggregate has no window.
func (a *ExactAggregate) IsPlain() bool { return a.window == nil }

// Description implements gms.FunctionExpression.
func (a *ExactAggregate) Description() string {
	if a.Avg {
		return "returns the average value of expr in all rows."
	}
	return "returns the sum of expr in all rows"
}

// IsNullable implements gms.Expression: the sum of no rows is NULL.
func (a *ExactAggregate) IsNullable(*gms.Context) bool { return true }

// CollationCoercibility implements gms.CollationCoercible.
func (a *ExactAggregate) CollationCoercibility(*gms.Context) (gms.CollationID, byte) {
	return gms.Collation_binary, 5
}

// Eval implements gms.Expression; buffers and windows compute aggregates.
func (a *ExactAggregate) Eval(*gms.Context, gms.Row) (any, error) {
	return nil, aggregation.ErrEvalUnsupportedOnAggregation.New(a.name())
}

// Id implements gms.IdExpression.
func (a *ExactAggregate) Id() gms.ColumnId { return a.id }

// WithId implements gms.IdExpression.
func (a *ExactAggregate) WithId(id gms.ColumnId) gms.IdExpression {
	changed := *a
	changed.id = id
	return &changed
}

// Window implements gms.WindowAdaptableExpression.
func (a *ExactAggregate) Window() *gms.WindowDefinition { return a.window }

// WithWindow implements gms.WindowAdaptableExpression.
func (a *ExactAggregate) WithWindow(_ *gms.Context, w *gms.WindowDefinition) gms.WindowAdaptableExpression {
	changed := *a
	changed.window = w
	return &changed
}

// Children implements gms.Expression.
func (a *ExactAggregate) Children() []gms.Expression {
	all := []gms.Expression{a.Child}
	if a.window != nil {
		all = append(all, a.window.ToExpressions()...)
	}
	return all
}

// WithChildren implements gms.Expression.
func (a *ExactAggregate) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) == 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(a, 0, 1)
	}
	changed := *a
	changed.Child = children[0]
	if a.window != nil && len(children) > 1 {
		w, err := a.window.FromExpressions(ctx, children[1:])
		if err != nil {
			return nil, err
		}
		changed.window = w
	}
	return &changed, nil
}

// Resolved implements gms.Expression.
func (a *ExactAggregate) Resolved() bool {
	if !a.Child.Resolved() {
		return false
	}
	return a.window == nil || expression.ExpressionsResolved(append(a.window.OrderBy.ToExpressions(), a.window.PartitionBy...)...)
}

// NewBuffer implements gms.Aggregation.
func (a *ExactAggregate) NewBuffer(ctx *gms.Context) (gms.AggregationBuffer, error) {
	child, err := transform.Clone(ctx, a.Child)
	switch {
	case err != nil:
		return nil, err
	case a.exact(ctx):
		return &exactBuffer{ExactAggregate: a, child: child}, nil
	case a.Avg:
		return aggregation.NewAvgBuffer(child), nil
	}
	return aggregation.NewSumBuffer(child), nil
}

// NewWindowFunction implements gms.WindowAdaptableExpression.
func (a *ExactAggregate) NewWindowFunction(ctx *gms.Context) (gms.WindowFunction, error) {
	child, err := transform.Clone(ctx, a.Child)
	switch {
	case err != nil:
		return nil, err
	case a.exact(ctx):
		w := &exactWindow{ExactAggregate: a, child: child, framer: aggregation.NewUnboundedPrecedingToCurrentRowFramer()}
		if a.window != nil && a.window.Frame != nil {
			w.framer, err = a.window.Frame.NewFramer(a.window)
		}
		return w, err
	}
	var w gms.WindowFunction
	if a.Avg {
		w, err = aggregation.NewAvgAgg(child).WithWindow(ctx, a.window)
	} else {
		w, err = aggregation.NewSumAgg(child).WithWindow(ctx, a.window)
	}
	return &doubleWindow{WindowFunction: w, child: child}, err
}

// Result returns the aggregate of values that are not NULL: count is their number, and sum their sum.
func (a *ExactAggregate) Result(sum decimal.Decimal, count int64) any {
	if count == 0 {
		return nil
	}
	if !a.Avg {
		return sum
	}
	return sum.DivRound(decimal.NewFromInt(count), int32(a.scale(max(0, int(-sum.Exponent())))))
}

// A Total adds up numbers. It adds integers as integers while their sum fits.
type Total struct {
	Rows  int64           // number of values that are not NULL
	Whole int64           // the sum of integers, as long as it fits an int64
	Rest  decimal.Decimal // the rest of the sum
}

// add adds a value, which may be NULL.
func (t *Total) add(ctx *gms.Context, v any) error {
	if v == nil {
		return nil
	}
	t.Rows++
	if n, ok := row.Signed(v); ok {
		t.AddInt(n)
		return nil
	}
	d, ok := v.(decimal.Decimal)
	if !ok {
		converted, _, err := types.InternalDecimalType.Convert(ctx, row.BoundedNumber(v))
		if err != nil {
			return err
		}
		if d, ok = converted.(decimal.Decimal); !ok {
			t.Rows-- // the conversion made it NULL
			return nil
		}
	}
	t.Rest = t.Rest.Add(d)
	return nil
}

// AddInt adds a whole number. If Whole would overflow, AddInt first moves it to Rest.
func (t *Total) AddInt(n int64) {
	if (n > 0 && t.Whole > math.MaxInt64-n) || (n < 0 && t.Whole < math.MinInt64-n) {
		t.Rest = t.Rest.Add(decimal.NewFromInt(t.Whole))
		t.Whole = 0
	}
	t.Whole += n
}

// Sum returns the sum of the values added; 0 if there are none.
func (t *Total) Sum() decimal.Decimal {
	whole := decimal.NewFromInt(t.Whole)
	switch {
	case t.Whole == 0:
		return t.Rest
	case t.Rest.IsZero() && t.Rest.Exponent() == 0:
		return whole
	}
	return t.Rest.Add(whole)
}

// An exactBuffer aggregates a group.
type exactBuffer struct {
	*ExactAggregate
	child gms.Expression
	total Total
}

// Update implements gms.AggregationBuffer.
func (b *exactBuffer) Update(ctx *gms.Context, row gms.Row) error {
	v, err := b.child.Eval(ctx, row)
	if err != nil {
		return err
	}
	return b.total.add(ctx, v)
}

// Eval implements gms.AggregationBuffer.
func (b *exactBuffer) Eval(*gms.Context) (any, error) {
	return b.Result(b.total.Sum(), b.total.Rows), nil
}

// Dispose implements gms.Disposable.
func (b *exactBuffer) Dispose(ctx *gms.Context) { expression.Dispose(ctx, b.child) }

// An exactWindow aggregates each row's frame, from the running sums of its partition.
type exactWindow struct {
	*ExactAggregate
	child  gms.Expression
	framer gms.WindowFramer
	start  int
	sums   []decimal.Decimal // sum of the partition's rows before row i; one element more than rows
	rows   []int64           // number of values before row i that are not NULL
}

// DefaultFramer implements gms.WindowFunction.
func (w *exactWindow) DefaultFramer() gms.WindowFramer { return w.framer }

// StartPartition implements gms.WindowFunction.
func (w *exactWindow) StartPartition(ctx *gms.Context, part gms.WindowInterval, rows gms.WindowBuffer) error {
	w.Dispose(ctx)
	w.start = part.Start
	w.sums = append(w.sums[:0], decimal.Decimal{})
	w.rows = append(w.rows[:0], 0)
	var t Total
	for _, row := range rows[part.Start:part.End] {
		v, err := w.child.Eval(ctx, row)
		if err != nil {
			return err
		}
		if err := t.add(ctx, v); err != nil {
			return err
		}
		w.sums, w.rows = append(w.sums, t.Sum()), append(w.rows, t.Rows)
	}
	return nil
}

// Compute implements gms.WindowFunction.
func (w *exactWindow) Compute(_ *gms.Context, frame gms.WindowInterval, _ gms.WindowBuffer) (any, error) {
	if frame.End <= frame.Start {
		return nil, nil
	}
	from, to := frame.Start-w.start, frame.End-w.start
	return w.Result(w.sums[to].Sub(w.sums[from]), w.rows[to]-w.rows[from]), nil
}

// Dispose implements gms.Disposable.
func (w *exactWindow) Dispose(ctx *gms.Context) { expression.Dispose(ctx, w.child) }

// A doubleWindow is SUM or AVG of doubles. For a frame of NULLs it returns NULL;
// go-mysql-server returns 0, or NaN.
type doubleWindow struct {
	gms.WindowFunction
	child gms.Expression
	start int
	rows  []int // number of the partition's values before row i that are not NULL
}

// StartPartition implements gms.WindowFunction.
func (w *doubleWindow) StartPartition(ctx *gms.Context, part gms.WindowInterval, rows gms.WindowBuffer) error {
	w.start = part.Start
	w.rows = append(w.rows[:0], 0)
	for i, row := range rows[part.Start:part.End] {
		v, err := w.child.Eval(ctx, row)
		if err != nil {
			return err
		}
		n := w.rows[i]
		if v != nil {
			n++
		}
		w.rows = append(w.rows, n)
	}
	return w.WindowFunction.StartPartition(ctx, part, rows)
}

// Compute implements gms.WindowFunction.
func (w *doubleWindow) Compute(ctx *gms.Context, frame gms.WindowInterval, rows gms.WindowBuffer) (any, error) {
	if frame.End <= frame.Start || w.rows[frame.End-w.start] == w.rows[frame.Start-w.start] {
		return nil, nil
	}
	return w.WindowFunction.Compute(ctx, frame, rows)
}

// AddStored adds a stored integer of a column with the codec c; it ignores nil, which is NULL.
func (t *Total) AddStored(c *row.ValueCodec, b []byte) {
	if b == nil {
		return
	}
	t.Rows++
	if c.IsUnsigned() {
		n, _ := row.ReadUint(b)
		t.AddInt(int64(n))
		return
	}
	n, _ := row.ReadInt(b)
	t.AddInt(n)
}
