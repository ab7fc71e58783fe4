package compat

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
)

// A leastElement is MIN or MAX of an ENUM or SET. It compares texts, as MySQL does, and its value is one of the type,
// which comparisons and indexes expect of it.
type leastElement struct {
	gms.Aggregation // MIN or MAX of the texts
	typ             gms.Type
}

var (
	_ gms.Aggregation        = (*leastElement)(nil)
	_ gms.AggregationBuffer  = (*elementBuffer)(nil)
	_ gms.WindowFunction     = (*elementWindow)(nil)
	_ gms.CollationCoercible = (*leastElement)(nil)
)

// leastByText returns a MIN or MAX that compares the texts of an ENUM or SET; nil for other
// expressions.
func leastByText(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	switch e.(type) {
	case *aggregation.Min, *aggregation.Max:
	default:
		return nil, nil
	}
	of := e.Children()[0]
	if !of.Resolved() || !isElement(of.Type(ctx)) {
		return nil, nil
	}
	texts, err := e.WithChildren(ctx, slices.Concat([]gms.Expression{newAsText(ctx, of)}, e.Children()[1:])...)
	if err != nil {
		return nil, err
	}
	return &leastElement{texts.(gms.Aggregation), of.Type(ctx)}, nil
}

// Type implements gms.Expression.
func (l *leastElement) Type(*gms.Context) gms.Type { return l.typ }

// CollationCoercibility implements gms.CollationCoercible.
func (l *leastElement) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, l.Aggregation)
}

// WithChildren implements gms.Expression.
func (l *leastElement) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	texts, err := l.Aggregation.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &leastElement{texts.(gms.Aggregation), l.typ}, nil
}

// WithId implements gms.IdExpression.
func (l *leastElement) WithId(id gms.ColumnId) gms.IdExpression {
	return &leastElement{l.Aggregation.WithId(id).(gms.Aggregation), l.typ}
}

// WithWindow implements gms.WindowAdaptableExpression.
func (l *leastElement) WithWindow(ctx *gms.Context, window *gms.WindowDefinition) gms.WindowAdaptableExpression {
	return &leastElement{l.Aggregation.WithWindow(ctx, window).(gms.Aggregation), l.typ}
}

// NewBuffer implements gms.Aggregation.
func (l *leastElement) NewBuffer(ctx *gms.Context) (gms.AggregationBuffer, error) {
	b, err := l.Aggregation.NewBuffer(ctx)
	return &elementBuffer{b, l.typ}, err
}

// NewWindowFunction implements gms.WindowAdaptableExpression.
func (l *leastElement) NewWindowFunction(ctx *gms.Context) (gms.WindowFunction, error) {
	w, err := l.Aggregation.NewWindowFunction(ctx)
	return &elementWindow{w, l.typ}, err
}

// An elementBuffer returns the element whose text is the least of a group.
type elementBuffer struct {
	gms.AggregationBuffer
	typ gms.Type
}

// Eval implements gms.AggregationBuffer.
func (b *elementBuffer) Eval(ctx *gms.Context) (any, error) {
	text, err := b.AggregationBuffer.Eval(ctx)
	return elementOf(ctx, b.typ, text, err)
}

// An elementWindow returns the element whose text is the least of a window's frame.
type elementWindow struct {
	gms.WindowFunction
	typ gms.Type
}

// Compute implements gms.WindowFunction.
func (w *elementWindow) Compute(ctx *gms.Context, at gms.WindowInterval, rows gms.WindowBuffer) (any, error) {
	text, err := w.WindowFunction.Compute(ctx, at, rows)
	return elementOf(ctx, w.typ, text, err)
}

// elementOf returns the element of a text. It returns err, if that is not nil.
func elementOf(ctx *gms.Context, typ gms.Type, text any, err error) (any, error) {
	if err != nil || text == nil {
		return nil, err
	}
	element, _, err := typ.Convert(ctx, text)
	return element, err
}
