package sql

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// go-mysql-server makes the texts of all variables before it looks which of them a SHOW VARIABLES asks for.

// showVariables executes SHOW VARIABLES with a filter by names that all begin with a known text: only such variables are looked at.
// It returns nil for others, which go-mysql-server executes.
func showVariables(ctx *gms.Context, n *plan.ShowVariables) (gms.RowIter, error) {
	if n.Global || n.Filter == nil {
		return nil, nil
	}
	beginnings, ok := beginningsOf(n.Filter)
	if !ok {
		return nil, nil
	}
	var rows []gms.Row
	for name := range gms.SystemVariables.NewSessionMap() { // any order: the rows are sorted
		begins := func(b string) bool { return strings.HasPrefix(name, b) }
		if !slices.ContainsFunc(beginnings, begins) {
			continue
		}
		if isWanted, err := isShown(ctx, n.Filter, name); err != nil || !isWanted {
			if err != nil {
				return nil, nil // go-mysql-server warns
			}
			continue
		}
		value, err := ctx.GetSessionVariable(ctx, name)
		if err != nil {
			return nil, nil
		}
		rows = append(rows, gms.Row{name, switchText(value)})
	}
	slices.SortFunc(rows, func(a, b gms.Row) int { return strings.Compare(a[0].(string), b[0].(string)) })
	return gms.RowsToRowIter(rows...), nil
}

// switchText returns ON or OFF for the value of a switch, and other values as they are.
func switchText(value any) any {
	switch value {
	case int8(0):
		return "OFF"
	case int8(1):
		return "ON"
	}
	return value
}

// isShown reports whether a filter of SHOW VARIABLES accepts a variable.
func isShown(ctx *gms.Context, filter gms.Expression, name string) (bool, error) {
	v, err := filter.Eval(ctx, gms.Row{name})
	if err != nil {
		return false, err
	}
	b, _, err := types.Boolean.Convert(ctx, v)
	return b == int8(1), err
}

// beginningsOf returns texts in lower case, with one of which each name that a filter accepts begins; false if there are no such texts.
func beginningsOf(filter gms.Expression) (all []string, ok bool) {
	switch f := filter.(type) {
	case *expression.Like:
		pattern, ok := textOf(f.RightChild)
		if f.Escape != nil || !isName(f.LeftChild) || !ok {
			return nil, false
		}
		return oneBeginning(pattern)
	case *expression.Equals:
		text, ok := textOf(f.Right())
		if !isName(f.Left()) || !ok {
			return nil, false
		}
		return oneBeginning(text)
	case *expression.InTuple:
		return listBeginnings(f.Left(), f.Right())
	case *expression.HashInTuple:
		return listBeginnings(f.Left(), f.Right())
	case *expression.Or:
		left, ok := beginningsOf(f.LeftChild)
		right, okay := beginningsOf(f.RightChild)
		return append(left, right...), ok && okay
	}
	return nil, false
}

// listBeginnings is beginningsOf for IN of a list.
func listBeginnings(left, right gms.Expression) (all []string, ok bool) {
	list, ok := right.(expression.Tuple)
	if !ok || !isName(left) {
		return nil, false
	}
	for _, e := range list {
		text, ok := textOf(e)
		one, okay := oneBeginning(text)
		if !ok || !okay {
			return nil, false
		}
		all = append(all, one...)
	}
	return all, true
}

// oneBeginning returns the beginning of a pattern or a text up to what may stand for other characters; false if there is nothing before it.
func oneBeginning(text string) ([]string, bool) {
	end := 0
	for end < len(text) && text[end] != '%' && text[end] != '_' && text[end] != '\\' && text[end] > ' ' && text[end] < 0x7f {
		end++
	}
	return []string{strings.ToLower(text[:end])}, end > 0
}

func textOf(e gms.Expression) (string, bool) {
	l, ok := e.(*expression.Literal)
	if !ok {
		return "", false
	}
	text, ok := l.Value().(string)
	return text, ok
}

func isName(e gms.Expression) bool {
	f, ok := e.(*expression.GetField)
	return ok && f.Index() == 0 && strings.EqualFold(f.Name(), plan.ShowVariablesVariableCol)
}
