package compat

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/hash"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/shopspring/decimal"
)

// This file replaces expressions that compare differently from MySQL. IN, and aggregates with
// DISTINCT, have to compare strings by their collation, as = does; go-mysql-server compares their
// bytes. go-mysql-server also rounds decimals to a column's scale before it compares them with the
// column.

var (
	_ gms.Expression        = (*collatedIn)(nil)
	_ gms.Aggregation       = (*DistinctAggregate)(nil)
	_ gms.AggregationBuffer = (*distinctBuffer)(nil)
)

// Compared returns the expression that replaces e, so that it computes as in MySQL, or e itself.
func Compared(ctx *gms.Context, n gms.Node, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	if timely, err := withTimes(ctx, e); timely != nil || err != nil {
		return timely, transform.NewTree, err
	}
	if ours, err := withElements(ctx, e); ours != nil || err != nil {
		return ours, transform.NewTree, err
	}
	if ours, err := byPath(ctx, e); ours != nil || err != nil {
		return ours, transform.NewTree, err
	}
	if text := caseOfJSON(ctx, e); text != nil {
		return text, transform.NewTree, nil
	}
	if bounded, same, err := boundedArgument(ctx, e); !same || err != nil {
		return bounded, same, err
	}
	var instead gms.Expression
	switch e := e.(type) {
	case *expression.HashInTuple:
		c, err := newCollatedIn(ctx, e)
		if err != nil {
			return e, transform.SameTree, err
		}
		if c != nil {
			instead = c
		}
	case *plan.InSubquery:
		if sq, ok := e.RightChild.(*plan.Subquery); ok && sq.Type(ctx) == types.Null {
			instead = &inNull{e, sq}
			break
		}
		if row, err := newRowInQuery(ctx, e.LeftChild, e.RightChild, equals, true); row != nil || err != nil {
			return row, transform.NewTree, err
		}
		if exact, err := newExactIn(ctx, e); exact != nil || err != nil {
			return exact, transform.NewTree, err
		}
		return exactOperands(ctx, e)
	case *expression.Equals:
		if row, err := newRowInQuery(ctx, e.Left(), e.Right(), equals, false); row != nil || err != nil {
			return row, transform.NewTree, err
		}
		return exactOperands(ctx, e)
	case *expression.NullSafeEquals:
		if row, err := newRowInQuery(ctx, e.Left(), e.Right(), nullSafeEquals, false); row != nil || err != nil {
			return row, transform.NewTree, err
		}
		if hasText(ctx, []gms.Expression{e.Left()}) && hasText(ctx, []gms.Expression{e.Right()}) {
			instead = &nullSafeText{e, expression.NewEquals(e.Left(), e.Right())}
			break
		}
		return exactOperands(ctx, e)
	case expression.Comparer, *expression.Between, *expression.Case, *function.NullIf:
		return exactOperands(ctx, e)
	case *expression.Like:
		if plain := withPlainPattern(e); plain != nil {
			instead = plain
		}
	case *like:
		if plain := withPlainPattern(e.Like); plain != nil {
			instead = &like{plain}
		}
	case *expression.Convert:
		if e.Type(ctx) == types.Int64 && e.Child.Type(ctx) == types.Uint64 {
			instead = &signedBits{e}
			break
		}
		if wantsText(e.Type(ctx), e.Child.Type(ctx)) {
			return withText(ctx, e)
		}
		if wantsDigits(ctx, e) {
			changed, err := e.WithChildren(ctx, newAsDigits(ctx, e.Child))
			return changed, transform.NewTree, err
		}
	case *expression.UnaryMinus, *expression.Div:
		if e.Type(ctx) == types.Float64 {
			instead = &plainDouble{e}
		}
	case *expression.BitOp:
		instead = newExactBits(ctx, e)
	case *expression.Arithmetic:
		if moved := newMoved(e); moved != nil {
			return moved, transform.NewTree, nil
		}
		instead = newCheckedArithmetic(ctx, e)
	case *aggregation.CountDistinct:
		if _, isStar := e.Children()[0].(*expression.Star); !isStar {
			instead = &DistinctAggregate{Aggregation: e, Keys: e.Children(), Counts: true}
		}
	case *aggregation.GroupConcat:
		if keys := e.OutputExpressions(); IsDistinct(e) && hasText(ctx, keys) {
			instead = &DistinctAggregate{Aggregation: e, Keys: keys}
		}
	}
	if instead == nil {
		return e, transform.SameTree, nil
	}
	return instead, transform.NewTree, nil
}

// A collatedIn is an IN whose operands are all strings.
type collatedIn struct {
	*expression.HashInTuple
	collation gms.CollationID
	values    map[uint64]bool // the hashes of the list's strings
	null      bool            // the list has a NULL
}

// newCollatedIn returns nil if an operand is neither a string nor NULL, or if the strings are compared
// by their bytes.
func newCollatedIn(ctx *gms.Context, in *expression.HashInTuple) (*collatedIn, error) {
	list, ok := in.Right().(expression.Tuple)
	if !ok || !types.IsTextOnly(in.Left().Type(ctx)) {
		return nil, nil
	}
	c := &collatedIn{HashInTuple: in, values: make(map[uint64]bool, len(list))}
	var coercibility byte
	c.collation, coercibility = gms.GetCoercibility(ctx, in.Left())
	for _, e := range list {
		if e.Type(ctx) == types.Null {
			continue
		}
		if !types.IsTextOnly(e.Type(ctx)) {
			return nil, nil
		}
		other, weight := gms.GetCoercibility(ctx, e)
		c.collation, coercibility = gms.ResolveCoercibility(c.collation, coercibility, other, weight)
	}
	if c.collation == gms.Collation_binary || c.collation == gms.Collation_Unspecified {
		return nil, nil
	}
	for _, e := range list {
		v, err := e.Eval(ctx, nil)
		if err != nil {
			return nil, err
		}
		if v == nil {
			c.null = true
			continue
		}
		key, err := c.hash(ctx, v)
		if err != nil {
			return nil, err
		}
		c.values[key] = true
	}
	return c, nil
}

func (c *collatedIn) hash(ctx *gms.Context, v any) (uint64, error) {
	s, err := types.ConvertToString(ctx, v, types.LongText, nil)
	if err != nil {
		return 0, err
	}
	return c.collation.HashToUint(s)
}

// Eval implements gms.Expression.
func (c *collatedIn) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := c.Left().Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	key, err := c.hash(ctx, v)
	if err != nil {
		return nil, err
	}
	if !c.values[key] && c.null {
		return nil, nil
	}
	return c.values[key], nil
}

// WithChildren implements gms.Expression.
func (c *collatedIn) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := c.HashInTuple.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	changed := *c
	changed.HashInTuple = e.(*expression.HashInTuple)
	return &changed, nil
}

// exactOperands makes an expression compare decimals exactly. In a column's own type, the other
// operands would be rounded, and 1.556 would equal a 1.56.
func exactOperands(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	e, same, err := withExactOperands(ctx, e)
	if n, ok := e.(*function.NullIf); ok && err == nil {
		if bounded := newNullIf(ctx, n); bounded != nil {
			return bounded, transform.NewTree, nil
		}
	}
	return e, same, err
}

func withExactOperands(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
	same := transform.SameTree
	operands := slices.Clone(e.Children())
	for i, operand := range operands {
		if _, isIn := e.(*plan.InSubquery); isIn && i > 0 {
			break // InSubquery compares by the Go type of its right side
		}
		exact, isSame := exactColumn(ctx, operand)
		operands[i], same = exact, same && isSame
	}
	if withTextNumber(ctx, e, operands) || boundOperands(ctx, e, operands) {
		same = transform.NewTree
	}
	if same {
		return e, same, nil
	}
	e, err := e.WithChildren(ctx, operands...)
	return e, same, err
}

// exactColumn returns a column, or a tuple with columns, with a type that does not round decimals. It
// converts TIME(n) to go-mysql-server's own TIME. Other expressions stay as they are.
func exactColumn(ctx *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity) {
	if isTimeColumn(ctx, e) {
		return asPlainTime(ctx, e), transform.NewTree
	}
	switch e := e.(type) {
	case expression.Tuple:
		same := transform.SameTree
		all := make(expression.Tuple, len(e))
		for i := range e {
			exact, isSame := exactColumn(ctx, e[i])
			all[i], same = exact, same && isSame
		}
		if !same {
			return all, same
		}
	case *expression.GetField:
		t, ok := e.Type(ctx).(gms.DecimalType)
		if !ok || !rounds(t) {
			break
		}
		plain, err := types.CreateDecimalType(t.Precision(), t.Scale())
		if err != nil {
			break // no column has such a type
		}
		return expression.NewGetFieldWithTable(e.Index(), int(e.TableId()), plain, e.Database(), e.Table(), e.Name(), e.IsNullable(ctx)), transform.NewTree
	}
	return e, transform.SameTree
}

// rounds reports whether a comparison in a decimal type rounds its operands.
func rounds(t gms.DecimalType) bool {
	scale := -int32(t.Scale()) - 1 // one digit more than the type has
	d, err := t.ConvertToNullDecimal(decimal.New(1, scale))
	return err == nil && d.Decimal.Exponent() != scale
}

// hasText reports whether any of the expressions may be a string with a collation.
func hasText(ctx *gms.Context, all []gms.Expression) bool {
	return slices.ContainsFunc(all, func(e gms.Expression) bool { return types.IsTextOnly(e.Type(ctx)) })
}

// IsDistinct reports whether GROUP_CONCAT has DISTINCT, which shows only in its text.
func IsDistinct(g *aggregation.GroupConcat) bool {
	return strings.HasPrefix(g.String(), "group_concat(distinct ")
}

// An inNull is an IN of a subquery whose column has the type NULL. go-mysql-server cannot look up a
// value in this type, and so reports that it is missing.
type inNull struct {
	*plan.InSubquery
	query *plan.Subquery
}

// Eval implements gms.Expression.
func (n *inNull) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	has, err := n.query.HasResultRow(ctx, row)
	if err != nil || has {
		return nil, err
	}
	return false, nil
}

// A nullSafeText is <=> of texts. go-mysql-server compares them by its own default collation;
// for = it uses their collation.
type nullSafeText struct {
	*expression.NullSafeEquals
	equal *expression.Equals
}

// Eval implements gms.Expression.
func (n *nullSafeText) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := n.equal.Eval(ctx, row)
	if err != nil || v != nil {
		return v, err
	}
	for _, e := range n.equal.Children() {
		if v, err := e.Eval(ctx, row); err != nil || v != nil {
			return false, err
		}
	}
	return true, nil
}

// WithChildren implements gms.Expression.
func (n *nullSafeText) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := n.NullSafeEquals.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return &nullSafeText{e.(*expression.NullSafeEquals), expression.NewEquals(children[0], children[1])}, nil
}

// A DistinctAggregate is an aggregate with DISTINCT. It drops values that are equal to an
// earlier one by their collation, before the aggregate compares bytes.
type DistinctAggregate struct {
	gms.Aggregation
	Keys   []gms.Expression // values that have to differ
	Memory Memory           // counts the memory of kept values; may be nil
	// Counts is set for COUNT. go-mysql-server's COUNT DISTINCT converts everything to text,
	// which fails for TIME and bytes.
	Counts bool
}

// WithChildren implements gms.Expression.
func (a *DistinctAggregate) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := a.Aggregation.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	e, _, err = Compared(ctx, nil, e)
	return e, err
}

// NewBuffer implements gms.Aggregation.
func (a *DistinctAggregate) NewBuffer(ctx *gms.Context) (gms.AggregationBuffer, error) {
	var b gms.AggregationBuffer = &counter{}
	if !a.Counts {
		var err error
		if b, err = a.Aggregation.NewBuffer(ctx); err != nil {
			return nil, err
		}
	}
	return &distinctBuffer{AggregationBuffer: b, counts: a.Counts, keys: a.Keys, values: NewRowSet(a.Memory, hash.ExprsToSchema(ctx, a.Keys...))}, nil
}

// A distinctBuffer aggregates a group.
type distinctBuffer struct {
	gms.AggregationBuffer
	counts bool
	keys   []gms.Expression
	values *RowSet
}

// A counter counts the rows of a group.
type counter struct{ rows int64 }

// Update implements gms.AggregationBuffer.
func (c *counter) Update(*gms.Context, gms.Row) error {
	c.rows++
	return nil
}

// Eval implements gms.AggregationBuffer.
func (c *counter) Eval(*gms.Context) (any, error) { return c.rows, nil }

// Dispose implements gms.Disposable.
func (c *counter) Dispose(*gms.Context) {}

// Update implements gms.AggregationBuffer.
func (b *distinctBuffer) Update(ctx *gms.Context, row gms.Row) error {
	values := make(gms.Row, len(b.keys))
	for i, k := range b.keys {
		v, err := k.Eval(ctx, row)
		if err != nil {
			return err
		}
		if v == nil && b.counts {
			return nil // COUNT leaves out rows with a NULL
		}
		values[i] = v
	}
	isNew, err := b.values.Add(ctx, values)
	if err != nil || !isNew {
		return err
	}
	return b.AggregationBuffer.Update(ctx, row)
}

// Dispose implements gms.Disposable.
func (b *distinctBuffer) Dispose(ctx *gms.Context) {
	b.values.forget()
	b.AggregationBuffer.Dispose(ctx)
}
