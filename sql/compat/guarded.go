package compat

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server's RAND(NULL) panics. So does UNIX_TIMESTAMP of anything that needs the session or
// warns: it is evaluated while planning, without a context, for the type of the result.

// guards maps functions of go-mysql-server's that may panic to the replacements of their arguments, with
// which they do not.
var guards = map[string]func(ctx *gms.Context, arg gms.Expression) gms.Expression{
	"rand": func(ctx *gms.Context, arg gms.Expression) gms.Expression {
		return function.NewIfNull(ctx, arg, expression.NewLiteral(int64(0), types.Int64))
	},
	"unix_timestamp": func(ctx *gms.Context, arg gms.Expression) gms.Expression {
		_, isLiteral := arg.(*expression.Literal)
		if arg.Resolved() && (types.IsTime(arg.Type(ctx)) || (isLiteral && types.IsText(arg.Type(ctx)))) {
			return arg
		}
		return &numberAsDate{expression.UnaryExpressionStub{Child: arg}}
	},
}

// guardedFunction returns a function of go-mysql-server's with guarded arguments.
func guardedFunction(name string) (gms.Function, bool) {
	guard, ok := guards[name]
	if !ok {
		return nil, false
	}
	newInstance := newUnixTimestamp
	if name != "unix_timestamp" {
		newInstance = func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
			return BuiltIns[name].NewInstance(ctx, args)
		}
	}
	return gms.FunctionN{Name: name, Fn: func(ctx *gms.Context, args ...gms.Expression) (gms.Expression, error) {
		guarded := make([]gms.Expression, len(args))
		for i, a := range args {
			guarded[i] = guard(ctx, a)
		}
		return newInstance(ctx, guarded...)
	}}, true
}
