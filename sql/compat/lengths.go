package compat

import (
	"context"
	"math"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/shopspring/decimal"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// The result of a text function is at most max_allowed_packet long: a longer one is NULL,
// with warning 1301. go-mysql-server has no bound, and some functions turn a few bytes into
// more than the computer's memory. So the length is computed before calling functions that
// turn short strings into long ones, and all results are measured.

// A Lender is a session that counts temporary memory.
type Lender interface {
	// Lend counts n bytes until give is called, or returns an error.
	Lend(n int64) (give func(), err error)
}

// lend makes the session count n bytes until give is called.
func lend(ctx *gms.Context, n int64) (give func(), err error) {
	if l, ok := ctx.Session.(Lender); ok {
		return l.Lend(n)
	}
	return func() {}, nil
}

// allowedPacketMin is the least value that max_allowed_packet can have.
const allowedPacketMin = 1024

// A measure says how a function's results are bounded.
type measure struct {
	// most bounds the bytes of a result, given the arguments; none of them is NULL if strict
	// is set.
	most func(args gms.Row) int64
	// strict is set if the function returns NULL when any argument is NULL.
	strict bool
	// eval, if not nil, evaluates the function in place of go-mysql-server.
	eval func(ctx *gms.Context, args gms.Row) (any, error)
	// parses is set if the function parses text arguments as JSON.
	parses bool
}

// jsonFactor is the memory that a byte of JSON text may take once parsed: {"a":{"a": ...
// takes about that.
const jsonFactor = 40

// measures has a measure for each function whose result can be longer than any argument.
var measures = map[string]*measure{
	"repeat":  {strict: true, most: func(a gms.Row) int64 { return product(TextBytes(a[0]), count(a[1])) }, eval: repeatedText},
	"space":   {strict: true, most: func(a gms.Row) int64 { return count(a[0]) }, eval: spaces},
	"lpad":    {strict: true, most: paddedBytes, eval: padLeft},
	"rpad":    {strict: true, most: paddedBytes, eval: padRight},
	"concat":  {strict: true, most: func(a gms.Row) int64 { return textsBytes(a) }},
	"replace": {strict: true, most: replaced},
	"insert":  {strict: true, most: func(a gms.Row) int64 { return TextBytes(a[0]) + TextBytes(a[3]) }, eval: inserted},
	"concat_ws": {most: func(a gms.Row) int64 {
		return textsBytes(a[1:]) + product(TextBytes(a[0]), int64(max(0, len(a)-2)))
	}},
	"make_set":       {most: func(a gms.Row) int64 { return textsBytes(a[1:]) + int64(len(a)) }},
	"export_set":     {strict: true, most: exportedSet},
	"hex":            {strict: true, most: func(a gms.Row) int64 { return product(2, TextBytes(a[0])) }},
	"to_base64":      {strict: true, most: func(a gms.Row) int64 { return TextBytes(a[0]) / 3 * 4 }},
	"quote":          {most: func(a gms.Row) int64 { return TextBytes(a[0]) }, eval: quoted},
	"regexp_replace": {strict: true, most: regexpReplaced},
	"date_format":    {strict: true, most: formatted},
	"time_format":    {strict: true, most: formatted, eval: timeFormatted},
	"format":         {strict: true, most: func(a gms.Row) int64 { return TextBytes(a[0]) + count(a[1]) }},

	"json_array":          {most: textsBytes},
	"json_object":         {most: textsBytes},
	"json_quote":          {most: textsBytes},
	"json_array_append":   {most: textsBytes, parses: true},
	"json_array_insert":   {most: textsBytes, parses: true},
	"json_insert":         {most: textsBytes, parses: true},
	"json_merge":          {most: textsBytes, parses: true},
	"json_merge_patch":    {most: textsBytes, parses: true},
	"json_merge_preserve": {most: textsBytes, parses: true},
	"json_pretty":         {most: prettyBytes, parses: true},
	"json_replace":        {most: textsBytes, parses: true},
	"json_set":            {most: textsBytes, parses: true},
}

// boundedFunction returns a function of go-mysql-server's whose results are bounded.
func boundedFunction(name string) (gms.Function, bool) {
	name = strings.ToLower(name)
	m, ok := measures[name]
	if !ok {
		return nil, false
	}
	ordinary := BuiltIns[name]
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		call, err := ordinary.NewInstance(ctx, args)
		if err != nil {
			return nil, err
		}
		return newMeasured(ctx, m, name, call)
	}}, true
}

// BuiltIns are go-mysql-server's functions.
var BuiltIns = function.NewRegistry()

var (
	_ gms.FunctionExpression = (*measuredCall)(nil)
	_ gms.CollationCoercible = (*measuredCall)(nil)
)

// A measuredCall is the call of a function whose result is bounded.
type measuredCall struct {
	// Expression is the original call.
	gms.Expression
	*measure
	name string
	// args are its arguments, and over is the same call over a row of their values:
	// evaluating an argument twice could give two values.
	args []gms.Expression
	over gms.Expression
}

func newMeasured(ctx *gms.Context, m *measure, name string, call gms.Expression) (gms.Expression, error) {
	args := call.Children()
	values := make([]gms.Expression, len(args))
	for i, a := range args {
		values[i] = &argument{a, i}
	}
	over, err := call.WithChildren(ctx, values...)
	if err != nil {
		return nil, err
	}
	return &measuredCall{Expression: call, measure: m, name: name, args: args, over: over}, nil
}

// FunctionName implements gms.FunctionExpression.
func (c *measuredCall) FunctionName() string { return c.name }

// Description implements gms.FunctionExpression.
func (c *measuredCall) Description() string {
	if f, ok := c.Expression.(gms.FunctionExpression); ok {
		return f.Description()
	}
	return ""
}

// CollationCoercibility implements gms.CollationCoercible.
func (c *measuredCall) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, c.Expression)
}

// WithChildren implements gms.Expression.
func (c *measuredCall) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	call, err := c.Expression.WithChildren(ctx, children...)
	if err != nil {
		return nil, err
	}
	return newMeasured(ctx, c.measure, c.name, call)
}

// Eval implements gms.Expression. It checks the length before the call, which would take the
// memory, and again after it, when the length is known exactly.
func (c *measuredCall) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	args := make(gms.Row, len(c.args))
	for i, a := range c.args {
		v, err := a.Eval(ctx, row)
		if err != nil || (v == nil && c.strict) {
			return nil, err
		}
		args[i] = v
	}
	if n := c.most(args); n > allowedPacketMin && n > allowedPacket(ctx) {
		return c.tooLong(ctx), nil
	}
	v, err := c.call(ctx, args)
	if err != nil {
		return nil, err
	}
	if n := TextBytes(v); n > allowedPacketMin && n > allowedPacket(ctx) {
		return c.tooLong(ctx), nil
	}
	return v, nil
}

// call calls the function, after counting the memory that it may need.
func (c *measuredCall) call(ctx *gms.Context, args gms.Row) (any, error) {
	if c.eval != nil {
		return c.eval(ctx, args)
	}
	if c.parses {
		give, err := lend(ctx, product(jsonFactor, textsBytes(args)))
		if err != nil {
			return nil, err
		}
		defer give()
	}
	return c.over.Eval(ctx, args)
}

// tooLong adds MySQL's warning for a result longer than max_allowed_packet, and returns NULL in
// place of the result.
func (c *measuredCall) tooLong(ctx *gms.Context) any {
	myerr.ResultTruncated.Warn(ctx, c.name, allowedPacket(ctx))
	return nil
}

// allowedPacket returns the session's max_allowed_packet. As in MySQL, the global value
// bounds it.
func allowedPacket(ctx *gms.Context) int64 {
	n := int64(math.MaxInt64)
	if _, v, ok := gms.SystemVariables.GetGlobal("max_allowed_packet"); ok {
		n = min(n, count(v))
	}
	if v, err := ctx.GetSessionVariable(ctx, "max_allowed_packet"); err == nil {
		n = min(n, count(v))
	}
	return max(n, allowedPacketMin)
}

// An argument of a call stands for its computed value.
type argument struct {
	gms.Expression
	at int
}

var _ gms.CollationCoercible = (*argument)(nil)

// Eval implements gms.Expression.
func (a *argument) Eval(_ *gms.Context, args gms.Row) (any, error) { return args[a.at], nil }

// CollationCoercibility implements gms.CollationCoercible.
func (a *argument) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, a.Expression)
}

// count converts a value to a number of bytes or characters. It returns 0 for a value that is not
// a number, which is left to the function.
func count(v any) int64 {
	n, _, err := types.Float64.Convert(context.Background(), v)
	f, ok := n.(float64)
	switch {
	case err != nil || !ok || f < 0:
		return 0
	case f >= 1<<62:
		return 1 << 62
	}
	return int64(f)
}

// product multiplies lengths, 1<<62 at most.
func product(a, b int64) int64 {
	if a > 0 && b > (1<<62)/a {
		return 1 << 62
	}
	return a * b
}

// TextBytes estimates the length of a value as text.
func TextBytes(v any) int64 {
	switch v := v.(type) {
	case nil:
		return 0
	case string:
		return int64(len(v))
	case []byte:
		return int64(len(v))
	case types.JSONDocument:
		return TextBytes(v.Val)
	case *types.LazyJSONDocument:
		return int64(len(v.Bytes))
	case []any:
		return textsBytes(v) + int64(len(v))
	case map[string]any:
		n := int64(0)
		for name, value := range v {
			n += int64(len(name)) + 4 + TextBytes(value)
		}
		return n
	case decimal.Decimal:
		return int64(v.NumDigits()) + int64(max(v.Exponent(), -v.Exponent()))
	}
	return 8
}

func textsBytes(values gms.Row) int64 {
	n := int64(0)
	for _, v := range values {
		n += TextBytes(v)
	}
	return n
}

// mostBytes is the greatest length of a character in bytes.
const mostBytes = 4

// paddedBytes returns an upper bound, the same as MySQL's, of the length of the results of LPAD and
// RPAD.
func paddedBytes(a gms.Row) int64 {
	if _, isBinary := a[0].([]byte); isBinary {
		return count(a[1])
	}
	return product(mostBytes, count(a[1]))
}

// replaced returns an upper bound of the length of REPLACE's result.
func replaced(a gms.Row) int64 {
	text, old := textOf(a[0]), textOf(a[1])
	grows := TextBytes(a[2]) - int64(len(old)) // bytes that each replacement adds
	if old == "" || grows <= 0 {
		return int64(len(text))
	}
	return int64(len(text)) + product(int64(strings.Count(text, old)), grows)
}

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// regexpReplaced estimates the result's length. There can be a replacement before and after every
// character. That many are rare, so it assumes a sixteenth of them.
func regexpReplaced(a gms.Row) int64 {
	const replacedShare = 16
	text := TextBytes(a[0])
	return text + product(text+1, TextBytes(a[2]))/replacedShare
}

// formatted returns an upper bound: it assumes that the format consists of %W, which has the
// longest result.
func formatted(a gms.Row) int64 {
	const longest = 13
	return product(longest, TextBytes(a[1]))
}

// exportedSet returns an upper bound: 64 times the longer of the two texts, with separators.
func exportedSet(a gms.Row) int64 {
	const bits = 64
	between := int64(1)
	if len(a) > 3 {
		between = TextBytes(a[3])
	}
	return product(bits, max(TextBytes(a[1]), TextBytes(a[2]))+between)
}

// prettyBytes returns an upper bound of the length of JSON_PRETTY's result: an indented line for
// each value.
func prettyBytes(a gms.Row) int64 {
	text, ok := a[0].(string)
	if !ok {
		if doc, isDoc := a[0].(types.JSONDocument); isDoc {
			return prettyIn(doc.Val, 0)
		}
		return textsBytes(a)
	}
	bytes, depth := int64(len(text)), int64(0)
	for i := range len(text) {
		switch text[i] {
		case '[', '{':
			depth++
			bytes += 2*depth + 1 // a newline, and two spaces for each level
		case ',':
			bytes += 2*depth + 1
		case ']', '}':
			depth = max(0, depth-1)
			bytes += 2*depth + 1
		}
	}
	return bytes
}

// prettyIn does the work of prettyBytes for a value within depth arrays and objects.
func prettyIn(v any, depth int64) int64 {
	n := int64(0)
	switch v := v.(type) {
	case []any:
		for _, value := range v {
			n += prettyIn(value, depth+1)
		}
	case map[string]any:
		for name, value := range v {
			n += int64(len(name)) + prettyIn(value, depth+1)
		}
	default:
		n = TextBytes(v)
	}
	return n + 4*depth + 4 // the indentation of two lines, of the value and of a closing bracket
}

// repeatedText computes REPEAT: go-mysql-server refuses a negative number.
func repeatedText(ctx *gms.Context, args gms.Row) (any, error) {
	text, err := types.ConvertToString(ctx, args[0], types.LongText, nil)
	if err != nil {
		return nil, err
	}
	n, err := times(ctx, args[1])
	return strings.Repeat(text, n), err
}

// quoted computes QUOTE: go-mysql-server's own accepts no long text.
func quoted(ctx *gms.Context, args gms.Row) (any, error) {
	if args[0] == nil {
		return "NULL", nil
	}
	text, err := types.ConvertToString(ctx, args[0], types.LongText, nil)
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\x00", `\0`, "\x1a", `\Z`).Replace(text) + "'", err
}

// spaces computes SPACE(), whose result go-mysql-server puts together space by space.
func spaces(ctx *gms.Context, args gms.Row) (any, error) {
	n, err := times(ctx, args[0])
	return strings.Repeat(" ", n), err
}

// times returns how often to repeat a text: 0 if the number is negative. It warns if only a part of a
// text is a number.
func times(ctx *gms.Context, v any) (int, error) {
	v, _, err := types.Int64.Convert(ctx, v)
	switch {
	case gms.ErrTruncatedIncorrect.Is(err):
		ctx.Warn(mysql.ERTruncatedWrongValue, "%s", err.Error())
	case err != nil:
		return 0, err
	}
	n, _ := row.Signed(v)
	return int(max(n, 0)), nil
}
