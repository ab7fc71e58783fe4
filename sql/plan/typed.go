package plan

import (
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// This file finds the literals that are operands of expressions.

// assigned collects the literals in the value of an assignment.
func (l *Literals) assigned(e sqlparser.Expr) {
	if isOperand(e) {
		l.operand(e)
		return
	}
	l.typed(e)
}

// typed makes parameters of the literals of an expression that determine its plan and type only by their classes
// (Value.class). The other literals stay fixed.
func (l *Literals) typed(e sqlparser.Expr) {
	switch e := e.(type) {
	case *sqlparser.SQLVal:
		if n, ok := numberOf(e); ok && n < len(l.isTyped) && !l.keeps {
			l.isParameter[n], l.isTyped[n] = true, true
		}
	case *sqlparser.UnaryExpr:
		if e.Operator == sqlparser.UMinusStr {
			l.typed(e.Expr)
		}
	case *sqlparser.ParenExpr:
		l.typed(e.Expr)
	case *sqlparser.IntervalExpr:
		l.typed(e.Expr)
	case *sqlparser.BinaryExpr:
		switch e.Operator {
		case sqlparser.PlusStr, sqlparser.MinusStr, sqlparser.MultStr, sqlparser.DivStr, sqlparser.IntDivStr, sqlparser.ModStr:
			l.typed(e.Left)
			l.typed(e.Right)
		}
	case *sqlparser.Subquery:
		l.subquery(e)
	case *sqlparser.FuncExpr:
		l.arguments(e)
	}
}

// arguments collects the literals among the arguments of a function.
func (l *Literals) arguments(f *sqlparser.FuncExpr) {
	isTyped, ok := typedArguments[strings.ToLower(f.Name.String())]
	if !ok || !f.Qualifier.IsEmpty() || f.Over != nil || f.Distinct {
		return
	}
	for i, x := range f.Exprs {
		if a, ok := x.(*sqlparser.AliasedExpr); ok && isTyped(i) {
			l.typed(a.Expr)
		}
	}
}

// typedArguments tells for each function which arguments matter only by their classes. Digits,
// formats and paths matter by their values.
var typedArguments = func() map[string]func(int) bool {
	all := make(map[string]func(int) bool)
	for _, name := range strings.Fields(`date lower upper lcase ucase concat coalesce ifnull if nullif length char_length
		trim left right year month day dayofmonth datediff date_add date_sub adddate subdate unhex greatest least abs`) {
		all[name] = func(int) bool { return true }
	}
	for _, name := range strings.Fields("json_set json_insert json_replace") {
		all[name] = func(i int) bool { return i > 0 && i%2 == 0 }
	}
	return all
}()
