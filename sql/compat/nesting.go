package compat

import (
	"reflect"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server's planning recurses into nested nodes, and Go cannot catch a stack overflow: the
// process ends. So the nesting of a client's statement is checked before anything else.
const (
	// nestedMax bounds how deep an expression or a query may be: 1 + 1 + 1 is 2 deep. The
	// time that planning takes grows with its square, 0.3 s at the bound.
	nestedMax = 2000
	// chainMax bounds the terms of a chain of AND and OR, which costs less than nesting.
	chainMax = 100_000
	// unionMax bounds the parts of a UNION. Planning a UNION of that many parts takes a second.
	unionMax = 300
)

// CheckNesting refuses a statement that is nested too deep. It skips statements whose text is
// too short to exceed even unionMax, the least of the bounds.
func CheckNesting(query string, stmt sqlparser.Statement) error {
	if len(query) < 2*unionMax || stmt == nil {
		return nil
	}
	return nested(reflect.ValueOf(stmt), 0)
}

func tooDeep(what string, most int) error {
	return myerr.StackOverrun.New(what, most)
}

// A statement's views are parsed one by one, but planned inside each other. The bound is on the
// depth that they would have if each stood inside the one before. For each view it adds viewLevels,
// and the greatest depth that a text of the view's length can have. The bound also ends views that
// read each other in a circle, which would otherwise overflow Go's stack.
const (
	viewLevels = 20
	// ViewDepthMax bounds the sum of the ViewDepths of the views that a statement reads.
	ViewDepthMax = 100_000
)

// ViewDepth returns the depth that a view adds to the statement that reads it; text is its
// definition.
func ViewDepth(text string) int { return viewLevels + min(len(text)/2, nestedMax) }

// The parser itself bounds the depth of parentheses.
var errParentheses = tooDeep("too many parentheses inside each other", 200)

// TooDeep returns the error for a text whose parentheses are nested too deep; nil if the parser
// failed for another reason.
func TooDeep(err error) error {
	if err != nil && strings.Contains(err.Error(), "max nesting level reached") {
		return errParentheses
	}
	return nil
}

// checkChain follows the left side of a chain of AND and OR, or of the parts of a UNION, and checks the
// nesting of each right side. It returns the node at the end of the chain, or n itself if n begins none.
func checkChain(n sqlparser.SQLNode, depth int) (end sqlparser.SQLNode, isChain bool, err error) {
	for terms := 1; ; terms++ {
		var left, right sqlparser.SQLNode
		switch c := n.(type) {
		case *sqlparser.AndExpr:
			left, right = c.Left, c.Right
		case *sqlparser.OrExpr:
			left, right = c.Left, c.Right
		case *sqlparser.SetOp:
			if terms >= unionMax {
				return nil, true, tooDeep("too many parts of a UNION", unionMax)
			}
			for _, part := range []any{c.OrderBy, c.With, c.Limit} {
				if err := nested(reflect.ValueOf(part), depth+1); err != nil {
					return nil, true, err
				}
			}
			left, right = c.Left, c.Right
		default:
			return n, isChain, nil
		}
		isChain = true
		if terms >= chainMax {
			return nil, true, tooDeep("too many terms joined by AND and OR", chainMax)
		}
		if err := nested(reflect.ValueOf(right), depth+1); err != nil {
			return nil, true, err
		}
		n = left
	}
}

// nested checks a value at a depth: a node, or anything that contains nodes. It uses
// reflection because sqlparser.Walk does not reach every node.
func nested(v reflect.Value, depth int) error {
	if depth > nestedMax {
		return tooDeep("too many levels of nesting", nestedMax)
	}
	switch v.Kind() {
	case reflect.Interface:
		return nested(v.Elem(), depth)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return nestedIn(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				if err := nested(f, depth); err != nil {
					return err
				}
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := nested(v.Index(i), depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// nestedIn checks what v, which is not nil, points to.
func nestedIn(v reflect.Value, depth int) error {
	n, ok := v.Interface().(sqlparser.SQLNode)
	if !ok {
		return nested(v.Elem(), depth+1)
	}
	switch n.(type) {
	case *sqlparser.SQLVal, *sqlparser.ColName, *sqlparser.NullVal: // most nodes of a long INSERT
		return nil
	}
	end, isChain, err := checkChain(n, depth)
	switch {
	case err != nil:
		return err
	case !isChain:
		return nested(v.Elem(), depth+1)
	}
	return nested(reflect.ValueOf(end), depth+1)
}
