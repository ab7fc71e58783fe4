package plan

import (
	"fmt"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// A Condition is a condition on a row: true, false or unknown (NULL).
type Condition interface{ String() string }

// An Op is a comparison operator.
type Op byte

// The operators, in the order of opNames.
const (
	Equal Op = iota
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
)

var opNames = [...]string{"=", "<>", "<", "<=", ">", ">="}

// String returns the operator in SQL.
func (o Op) String() string { return opNames[o] }

// negated returns the operator that is true where o is false.
func (o Op) negated() Op {
	return [...]Op{Equal: NotEqual, NotEqual: Equal, Less: GreaterEqual, LessEqual: Greater, Greater: LessEqual, GreaterEqual: Less}[o]
}

// turned returns the operator for exchanged operands.
func (o Op) turned() Op {
	return [...]Op{Equal: Equal, NotEqual: NotEqual, Less: Greater, LessEqual: GreaterEqual, Greater: Less, GreaterEqual: LessEqual}[o]
}

type (
	// And is true if all its conditions are; the empty And is.
	And []Condition
	// Or is true if one of its conditions is.
	Or []Condition
	// Not is true if its condition is false.
	Not struct{ Condition }
	// Compare compares a column with a parameter.
	Compare struct {
		Column int
		Op     Op
		Value  Operand
	}
	// In is true if a column equals one of several parameters; with Not, if it equals none of them.
	In struct {
		Column int
		Values []Operand
		Not    bool
	}
	// Same is true if two columns are equal. They are compared like keys of either column.
	Same struct{ Left, Right int }
	// IsNull is true if a column is NULL; with Not, if it is not.
	IsNull struct {
		Column int
		Not    bool
	}
	// Like is true if a column matches a pattern, in which backslashes escape wildcards.
	Like struct {
		Column  int
		Pattern Operand
	}
	// Other is a condition that go-mysql-server evaluates.
	Other struct{ Expr gms.Expression }
)

// String returns the condition as plans show it; columns are shown by their positions.
func (c And) String() string { return list("and", c) }

// String returns the condition as plans show it.
func (c Or) String() string { return list("or", c) }

// String returns the condition as plans show it.
func (c Not) String() string { return "(not " + c.Condition.String() + ")" }

// String returns the condition as plans show it.
func (c Compare) String() string { return fmt.Sprintf("(%s #%d %s)", c.Op, c.Column, c.Value) }

// String returns the condition as plans show it.
func (c In) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "(%s #%d", named("in", c.Not), c.Column)
	for _, v := range c.Values {
		b.WriteString(" " + v.String())
	}
	return b.String() + ")"
}

// String returns the condition as plans show it.
func (c IsNull) String() string { return fmt.Sprintf("(%s #%d)", named("null", c.Not), c.Column) }

// String returns the condition as plans show it.
func (c Same) String() string { return fmt.Sprintf("(= #%d #%d)", c.Left, c.Right) }

// String returns the condition as plans show it.
func (c Like) String() string { return fmt.Sprintf("(like #%d %s)", c.Column, c.Pattern) }

// String returns the condition as plans show it.
func (c Other) String() string { return "(" + c.Expr.String() + ")" }

func named(name string, not bool) string {
	if not {
		return "not-" + name
	}
	return name
}

func list(name string, all []Condition) string {
	s := "(" + name
	for _, c := range all {
		s += " " + c.String()
	}
	return s + ")"
}
