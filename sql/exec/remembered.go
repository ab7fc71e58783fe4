package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"github.com/farmsql/farmsql/sql/plan"
)

// rememberedMax bounds the texts whose results a test remembers.
const rememberedMax = 1 << 10

// remembered returns the test of IN of a list of constants. The result depends on the left side's value alone, so that of a text
// that has come before is remembered: go-mysql-server compares each text with all of the list, and converts both each time.
func remembered(in *expression.InTuple) test {
	known := make(map[string]truth)
	return func(ctx *gms.Context, r gms.Row) (truth, error) {
		left, err := in.Left().Eval(ctx, r)
		if err != nil || left == nil {
			return isUnknown, err
		}
		text, isText := left.(string)
		if t, ok := known[text]; ok && isText {
			return t, nil
		}
		v, err := gms.EvaluateCondition(ctx, in, r)
		if err != nil {
			return isUnknown, err
		}
		t := isUnknown
		if v != nil {
			t = truthOf(gms.IsTrue(v))
		}
		if isText && len(known) < rememberedMax {
			known[text] = t
		}
		return t, nil
	}
}

// isConstantList reports whether the right side of IN is a list of constants.
func isConstantList(e gms.Expression) bool {
	list, ok := e.(expression.Tuple)
	for _, x := range list {
		switch x.(type) {
		case *expression.Literal, *plan.Parameter:
		default:
			return false
		}
	}
	return ok
}
