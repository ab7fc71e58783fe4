package compat

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/row"
)

// go-mysql-server passes an ENUM, a SET, a time or a JSON document to text functions in its
// internal form, so that they use a number, or fail. This file passes them the text.

// ofText are the functions that convert any argument to text.
var ofText = setOf("ascii", "bit_length", "char_length", "character_length", "concat", "concat_ws", "crc32", "elt", "field", "find_in_set", "from_base64",
	"hex", "insert", "instr", "lcase", "left", "length", "locate", "lower", "lpad", "ltrim", "md5", "mid", "octet_length", "ord", "position", "quote",
	"repeat", "replace", "reverse", "right", "rpad", "rtrim", "sha", "sha1", "sha2", "soundex", "strcmp", "substr", "substring", "substring_index",
	"to_base64", "trim", "ucase", "unhex", "upper")

// ofElements are the functions, besides the JSON functions, that convert an ENUM or a SET to
// text.
var ofElements = setOf("if", "ifnull", "coalesce", "greatest", "least")

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// textFunction returns the function of a name: ours, which bounds the result (boundedFunction) or is a
// scalar, or else go-mysql-server's. Its arguments are converted to text or numbers as textWanted says. If
// they need no conversion and the function is go-mysql-server's, textFunction returns false.
func textFunction(name string) (gms.Function, bool) {
	name = strings.ToLower(name)
	function, ok := boundedFunction(name)
	if !ok {
		function, ok = scalarFunction(name)
	}
	wants := textWanted(name)
	if wants == nil {
		return function, ok
	}
	if !ok {
		if function = BuiltIns[name]; function == nil {
			return nil, false
		}
	}
	as := func(ctx *gms.Context, e gms.Expression) gms.Expression { return newAsText(ctx, e) }
	if ofNumbers[name] {
		as = func(ctx *gms.Context, e gms.Expression) gms.Expression { return newAsDigits(ctx, e) }
	}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		args = slices.Clone(args)
		for i, a := range args {
			if a.Resolved() && wants(a.Type(ctx)) {
				args[i] = as(ctx, a)
			}
		}
		return function.NewInstance(ctx, args)
	}}, true
}

// textWanted returns a function that reports whether a function's argument of a type must be
// converted, to text or to a number; nil if none must be.
func textWanted(name string) func(gms.Type) bool {
	switch {
	case ofText[name]:
		return func(t gms.Type) bool {
			return isElement(t) || isOfTime(t) || types.IsJSON(t)
		}
	case strings.HasPrefix(name, "json_"):
		return func(t gms.Type) bool { return isElement(t) || row.IsTimespan(t) || types.IsDateType(t) }
	case ofElements[name]:
		return isElement
	case ofNumbers[name]:
		return isOfTime
	}
	return nil
}

func isElement(t gms.Type) bool { return types.IsEnum(t) || types.IsSet(t) }

// noFraction is a fraction that go-mysql-server prints although the value has none. It always
// prints six digits for TIME values, and for results of functions.
const noFraction = ".000000"

// An asText is the text of a value.
type asText struct {
	expression.UnaryExpressionStub
	typ gms.Type
}

var (
	_ gms.Expression         = (*asText)(nil)
	_ gms.CollationCoercible = (*asText)(nil)
)

// IsAsText reports whether an expression is the text of another one, which alone decides its value.
func IsAsText(e gms.Expression) bool {
	_, ok := e.(*asText)
	return ok
}

func newAsText(ctx *gms.Context, e gms.Expression) *asText {
	typ := gms.Type(types.LongText)
	if t, ok := e.Type(ctx).(gms.TypeWithCollation); ok && isElement(e.Type(ctx)) {
		typ = types.CreateLongText(t.Collation())
	}
	return &asText{expression.UnaryExpressionStub{Child: e}, typ}
}

// wantsText reports whether a conversion to the type target has to convert the text of the value, which
// is of the type source.
func wantsText(target, source gms.Type) bool {
	switch {
	case types.IsJSON(target):
		return isElement(source)
	case types.IsJSON(source):
		return types.IsTextOnly(target)
	}
	return types.IsText(target) && isOfTime(source)
}

// withText replaces the operand of a conversion by its text, as a JSON string if the result is
// JSON.
func withText(ctx *gms.Context, e *expression.Convert) (gms.Expression, transform.TreeIdentity, error) {
	var text gms.Expression = newAsText(ctx, e.Child)
	if types.IsJSON(e.Type(ctx)) {
		var err error
		if text, err = BuiltIns["json_quote"].NewInstance(ctx, []gms.Expression{text}); err != nil {
			return e, transform.SameTree, err
		}
	}
	changed, err := e.WithChildren(ctx, text)
	return changed, transform.NewTree, err
}

// WithTextOfTime returns an assignment that sets a text to the text of a date or time, or a variable to the
// text of an element of an ENUM or SET, and other assignments unchanged.
func WithTextOfTime(ctx *gms.Context, set *expression.SetField) (gms.Expression, transform.TreeIdentity, error) {
	if _, isVariable := set.LeftChild.(*expression.UserVar); isVariable && isElement(set.RightChild.Type(ctx)) {
		return expression.NewSetField(set.LeftChild, newAsText(ctx, set.RightChild)), transform.NewTree, nil
	}
	if _, isColumn := set.LeftChild.(*expression.GetField); !isColumn || !wantsText(set.LeftChild.Type(ctx), set.RightChild.Type(ctx)) {
		return set, transform.SameTree, nil
	}
	return expression.NewSetField(set.LeftChild, newAsText(ctx, set.RightChild)), transform.NewTree, nil
}

// Type implements gms.Expression.
func (a *asText) Type(*gms.Context) gms.Type { return a.typ }

// String implements gms.Expression.
func (a *asText) String() string { return a.Child.String() }

// CollationCoercibility implements gms.CollationCoercible.
func (a *asText) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	if isElement(a.Child.Type(ctx)) {
		return gms.GetCoercibility(ctx, a.Child)
	}
	return a.typ.CollationCoercibility(ctx)
}

// Eval implements gms.Expression.
func (a *asText) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	v, err := a.Child.Eval(ctx, row)
	if err != nil || v == nil {
		return nil, err
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	if t := a.Child.Type(ctx); !isElement(t) {
		out, err := t.SQL(ctx, nil, v)
		text := string(EscapeJSON(out))
		if saysDigits(a.Child, t) {
			return text, err
		}
		return strings.TrimSuffix(text, noFraction), err
	}
	s, _, err := types.ConvertToCollatedString(ctx, v, a.Child.Type(ctx))
	return s, err
}

// saysDigits reports whether the type of an expression states how many digits its fraction of a
// second has: the types of columns, of CAST and of our functions do. The types of go-mysql-server's functions
// always state six.
func saysDigits(e gms.Expression, t gms.Type) bool {
	if _, ok := t.(row.TimeType); ok {
		return true
	}
	if !types.IsTime(t) {
		return false
	}
	switch e := e.(type) {
	case *expression.GetField:
		return e.Database() != ""
	case *expression.Convert, *scalarCall, *clockCall, *exactDatetime, *movedTime, *numberAsDate:
		return true
	}
	return false
}

// WithChildren implements gms.Expression.
func (a *asText) WithChildren(_ *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(a, len(children), 1)
	}
	return &asText{expression.UnaryExpressionStub{Child: children[0]}, a.typ}, nil
}

// EscapeJSON returns the text of a value. In JSON it escapes control characters, most of which
// go-mysql-server writes unescaped.
func EscapeJSON(v sqltypes.Value) []byte {
	b := v.Raw()
	if v.Type() != sqltypes.TypeJSON {
		return b
	}
	return row.EscapeControls(b)
}
