package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
)

// This file takes expressions out of go-mysql-server's resolved tree.

// A scope describes the columns of a node's rows.
type scope struct {
	ids []gms.ColumnId
	// codecs are how the columns are compared, if they are those of tables; else nil.
	codecs []*row.KeyCodec
}

// place returns the position of a column, -1 if the rows do not have it.
func (s scope) place(f *expression.GetField) int {
	for i, id := range s.ids {
		if id != 0 && id == f.Id() {
			return i
		}
	}
	return -1
}

// column returns the position of the table's column that an expression is; false if it is none.
func (s scope) column(e gms.Expression) (int, bool) {
	f, ok := e.(*expression.GetField)
	if !ok || s.codecs == nil {
		return 0, false
	}
	at := s.place(f)
	return at, at >= 0
}

// expression returns an expression over the rows of a scope, with the corrections that
// go-mysql-server's expressions need.
func (b *builder) expression(e gms.Expression, s scope) (gms.Expression, error) {
	e, _, err := b.bind(e)
	if err != nil {
		return nil, err
	}
	if err := b.known(e); err != nil {
		return nil, err
	}
	e, err = corrected(b.ctx, e)
	if err != nil {
		return nil, err
	}
	b.shared = b.shared && isStateless(e)
	e, _, err = transform.Expr(b.ctx, e, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		f, ok := e.(*expression.GetField)
		if !ok {
			return e, transform.SameTree, nil
		}
		at := s.place(f)
		if at < 0 {
			return nil, transform.SameTree, refused("column %s", f)
		}
		return f.WithIndex(at), transform.NewTree, nil
	})
	return e, err
}

// bind puts Parameters for the variables in an expression that stand for the statement's values; isSame
// is set if there are none.
func (b *builder) bind(e gms.Expression) (bound gms.Expression, isSame bool, err error) {
	if o, ok := b.operand(e); ok {
		p, ok := NewParameter(b.ctx, o, b.values)
		if !ok {
			return nil, false, refused("the value of %s", o)
		}
		p.class = p.classOf(b.values)
		b.bound = append(b.bound, p)
		return p, false, nil
	}
	children := slices.Clone(e.Children())
	isSame = true
	for i, c := range children {
		if c == nil {
			continue
		}
		x, same, err := b.bind(c)
		if err != nil {
			return nil, false, err
		}
		children[i], isSame = x, isSame && same
	}
	if isSame {
		return e, true, nil
	}
	bound, err = e.WithChildren(b.ctx, children...)
	return bound, false, err
}

// expressions applies expression to several.
func (b *builder) expressions(all []gms.Expression, s scope) ([]gms.Expression, error) {
	out := make([]gms.Expression, len(all))
	var err error
	for i, e := range all {
		if out[i], err = b.expression(e, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isStateless reports whether an expression may be evaluated by several goroutines at a time.
func isStateless(e gms.Expression) bool {
	switch e := e.(type) {
	case *expression.GetField, *expression.Literal:
		return true
	case *expression.Alias:
		return isStateless(e.Child)
	}
	return false
}

// correctAs wraps an expression in a node for the rules that correct nodes.
func correctAs(e gms.Expression) gms.Node {
	return gmsplan.NewProject([]gms.Expression{e}, gmsplan.NewResolvedDualTable())
}

// corrected returns an expression as go-mysql-server evaluates it in our sessions.
func corrected(ctx *gms.Context, e gms.Expression) (gms.Expression, error) {
	n := correctAs(e)
	var err error
	for _, rule := range []analyzer.RuleFunc{compat.Moved, compat.Fractions, compat.PossibleTimes} {
		if n, _, err = rule(ctx, nil, n, nil, nil, nil); err != nil {
			return nil, err
		}
	}
	// What replaces an expression may have to be replaced itself: go-mysql-server's plans are corrected
	// again for as long as that changes them.
	for same := transform.NewTree; !same; {
		if n, same, err = transform.OneNodeExprsWithNode(ctx, n, compat.Compared); err != nil {
			return nil, err
		}
	}
	return n.(*gmsplan.Project).Projections[0], nil
}

// knownExpressions are the types of expressions that may be evaluated again and again: they depend
// on their operands alone, or on the context.
var knownExpressions = func() map[string]bool {
	known := make(map[string]bool)
	for _, name := range strings.Fields(`
		*plan.Parameter *expression.GetField *expression.Literal *expression.Alias *expression.Arithmetic *expression.UnaryMinus
		*expression.Equals *expression.GreaterThan *expression.GreaterThanOrEqual *expression.LessThan
		*expression.LessThanOrEqual *expression.NullSafeEquals *expression.And *expression.Or *expression.Not
		*expression.IsNull *expression.Between *expression.InTuple expression.Tuple *expression.Case *expression.CaseBranch *expression.Like
		*expression.SystemVar *function.LastInsertId *function.FoundRows *function.RowCount function.ConnectionID *function.Database
		*function.Upper *function.Lower *function.Concat *function.Coalesce *function.IfNull *function.If *function.NullIf
		*function.Length *function.CharLength *function.Substring *function.Trim function.Left function.Right *function.Unhex
		*function.Now function.CurrDate *function.Date *function.Year *function.Month *function.Day *function.DateDiff
		*function.DateAdd *function.DateSub *expression.Interval
		*function.Round *function.Greatest *function.Least *function.AbsVal *expression.Div *expression.IntDiv *expression.Mod *expression.Convert
		*json.JSONExtract *json.JSONUnquote
		*aggregation.Count *aggregation.CountDistinct *aggregation.Sum *aggregation.Avg *aggregation.Min *aggregation.Max
		*compat.ExactAggregate *compat.collated *compat.exactDatetime *compat.measuredCall *compat.scalarCall *compat.asText *compat.possibleTime *compat.numberAsDate`) {
		known[name] = true
	}
	return known
}()

// known returns an error if an expression contains one that is not known.
func (b *builder) known(e gms.Expression) (err error) {
	gms.Inspect(b.ctx, e, func(_ *gms.Context, e gms.Expression) bool {
		switch name := fmt.Sprintf("%T", e); {
		case e == nil || err != nil:
		case !knownExpressions[name]:
			err = refused("expression %s", name)
		case isRowList(e):
			err = refused("%s, a list of rows", e)
		case isEndOfElements(b.ctx, e):
			err = refused("%s of an ENUM or SET, which goes by its texts", name)
		case isMixedNullSafe(b.ctx, e):
			err = refused("<=> of values of several types")
		case hasDrawnPattern(b.ctx, e):
			err = refused("LIKE of a pattern that is not kept")
		case isOfWarnings(e):
			err = refused("%s, which is of the statement before", e)
		case isOfBytes(b.ctx, e):
			err = refused("a comparison of bytes")
		case isMixedTimes(b.ctx, e):
			err = refused("a comparison of times with numbers")
		case isListOfOthers(b.ctx, e):
			err = refused("a comparison of JSON, an ENUM or a SET with several values")
		case isMixedNumbers(b.ctx, e):
			err = refused("a comparison of doubles with decimals")
		}
		return err == nil
	})
	return err
}

// isMixedNullSafe reports whether an expression is <=> of values that are neither whole numbers nor texts, of which
// go-mysql-server converts one before it is planned.
func isMixedNullSafe(ctx *gms.Context, e gms.Expression) bool {
	n, ok := e.(*expression.NullSafeEquals)
	if !ok {
		return false
	}
	left, right := n.Left().Type(ctx), n.Right().Type(ctx)
	return !(types.IsInteger(left) && types.IsInteger(right) || types.IsTextOnly(left) && types.IsTextOnly(right) || right == types.Null)
}

// isRowList reports whether an expression looks for a row in a list of rows, which go-mysql-server gets wrong
// for NULLs in rows; conditions of scans and joins do it by columns.
func isRowList(e gms.Expression) bool {
	in, ok := e.(*expression.InTuple)
	if !ok {
		return false
	}
	_, ok = in.Left().(expression.Tuple)
	return ok
}

// isMixedNumbers reports whether an expression compares doubles with decimals: go-mysql-server does that by decimals,
// of which the largest and the smallest doubles are none, unless it uses an index.
func isMixedNumbers(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case expression.Comparer, *expression.Between:
	default:
		return false
	}
	doubles, decimals := false, false
	for _, c := range e.Children() {
		t := c.Type(ctx)
		doubles, decimals = doubles || types.IsFloat(t), decimals || types.IsDecimal(t)
	}
	return doubles && decimals
}

// isListOfOthers reports whether an expression is BETWEEN or IN, and compares JSON, an ENUM or a SET, which go-mysql-server
// does as texts, or as numbers, unless it has planned the expression.
func isListOfOthers(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case *expression.Between, *expression.InTuple:
		return slices.ContainsFunc(operands(e), func(c gms.Expression) bool {
			t := c.Type(ctx)
			return types.IsJSON(t) || types.IsEnum(t) || types.IsSet(t)
		})
	}
	return false
}

// hasDrawnPattern reports whether an expression is a LIKE whose pattern differs from one execution to the
// next: go-mysql-server keeps the first.
func hasDrawnPattern(ctx *gms.Context, e gms.Expression) bool {
	l, ok := e.(*expression.Like)
	return ok && len(parametersOf(ctx, l.RightChild)) > 0
}

// isOfWarnings reports whether an expression is a variable that counts warnings, which a plan forgets.
func isOfWarnings(e gms.Expression) bool {
	v, ok := e.(*expression.SystemVar)
	return ok && (strings.EqualFold(v.Name, "warning_count") || strings.EqualFold(v.Name, "error_count"))
}

// isOfBytes reports whether an expression compares bytes of which the statement gives some:
// go-mysql-server decides by their values, when it plans, whether they are text.
func isOfBytes(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case expression.Comparer, *expression.Between, *expression.InTuple:
		return hasBytes(ctx, e) && len(parametersOf(ctx, e)) > 0
	}
	return false
}

// hasBytes reports whether an expression makes bytes of a part of its operands, or has bytes among them.
func hasBytes(ctx *gms.Context, e gms.Expression) (has bool) {
	gms.Inspect(ctx, e, func(ctx *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *function.Unhex:
			has = true
		case *Parameter:
			has = has || types.IsBinaryType(e.Type(ctx))
		}
		return !has
	})
	return has
}

// isMixedTimes reports whether an expression compares times of day with dates, or times with numbers, or with texts that are
// computed of values that the statement gives: go-mysql-server reads them as times when it plans. It notes the parameters whose texts it reads so.
func isMixedTimes(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case expression.Comparer, *expression.Between, *expression.InTuple:
	default:
		return false
	}
	areTimes, areSpans, areOthers := false, false, false
	var texts []*Parameter
	for _, c := range operands(e) {
		t, given := c.Type(ctx), parametersOf(ctx, c)
		p, isParameter := c.(*Parameter)
		switch {
		case types.IsTimespan(t):
			areSpans = true
		case types.IsTime(t):
			areTimes = true
		case isParameter && types.IsTextOnly(t):
			texts = append(texts, p)
		case len(given) > 0 || types.IsNumber(t):
			areOthers = true
		}
	}
	if areTimes && areSpans {
		return true // a TIME is one of the present day, or none
	}
	areTimes = areTimes || areSpans
	for _, p := range texts {
		p.isTime = p.isTime || areTimes
	}
	_, isList := e.(*expression.InTuple) // which has not been planned before
	return areTimes && (areOthers || isList)
}

// operands returns what an expression compares: those of a list are among them.
func operands(e gms.Expression) (all []gms.Expression) {
	for _, c := range e.Children() {
		if t, ok := c.(expression.Tuple); ok {
			all = append(all, operands(t)...)
			continue
		}
		all = append(all, c)
	}
	return all
}

// isEndOfElements reports whether an expression is MIN or MAX of an ENUM or SET.
func isEndOfElements(ctx *gms.Context, e gms.Expression) bool {
	switch e.(type) {
	case *aggregation.Min, *aggregation.Max:
		t := e.Children()[0].Type(ctx)
		return types.IsEnum(t) || types.IsSet(t)
	}
	return false
}

// operand returns the parameter that an expression is, or whose negative it is.
func (b *builder) operand(e gms.Expression) (Operand, bool) {
	if m, ok := e.(*expression.UnaryMinus); ok {
		o, ok := b.operand(m.Child)
		o.Negative = !o.Negative
		return o, ok
	}
	v, ok := e.(*expression.BindVar)
	if !ok {
		return Operand{}, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(v.Name, "v"))
	if err != nil || n < 1 || n > len(b.parameters) {
		return Operand{}, false
	}
	return Operand{At: b.parameters[n-1]}, true
}
