package compat

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

const unnamedWindow = "<unnamed window>"

var selectType = reflect.TypeFor[*sqlparser.Select]()

// NameWindows replaces the names of windows in OVER and WINDOW by their definitions: a window
// that refers to another takes over its PARTITION BY and ORDER BY. go-mysql-server would give it
// a frame before it takes over the order, and accepts undefined names.
func NameWindows(query string, stmt sqlparser.Statement) (err error) {
	if !ContainsFold(query, "over") {
		return nil
	}
	EachOf(reflect.ValueOf(stmt), selectType, func(v reflect.Value) {
		err = cmp.Or(err, nameWindowsOf(v.Interface().(*sqlparser.Select)))
	})
	return err
}

// nameWindowsOf replaces the names of windows in one SELECT.
func nameWindowsOf(s *sqlparser.Select) error {
	if err := misplaced(s.Where); err != nil {
		return err
	}
	if err := misplaced(s.GroupBy); err != nil {
		return err
	}
	w := namedWindows{defined: make(map[string]*sqlparser.WindowDef), open: make(map[string]bool)}
	for _, def := range s.Window {
		if w.defined[def.Name.Lowered()] != nil {
			return myerr.WindowNamedTwice.New(def.Name.String())
		}
		w.defined[def.Name.Lowered()] = def
	}
	for _, def := range s.Window {
		if err := w.resolve(def); err != nil {
			return err
		}
	}
	texts := make(map[string]bool)
	if err := eachOver(s, func(over *sqlparser.Over) error {
		err := w.resolve((*sqlparser.WindowDef)(over))
		tellApart(over, texts)
		return err
	}); err != nil {
		return err
	}
	orderByAliases(s)
	return tellCallsApart(s)
}

// tellCallsApart makes go-mysql-server distinguish the window functions of a SELECT that it takes for one, and then fails: those
// of the same text, and the NTILEs over one window, whose numbers are not in its text. The second and further ones
// are partitioned by constants, which changes nothing else.
func tellCallsApart(s *sqlparser.Select) error {
	calls := make(map[string]int)
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Select:
			return n == s, nil
		case *sqlparser.FuncExpr:
			if n.Over == nil {
				return true, nil
			}
			text := n.Name.Lowered()
			if text != "ntile" {
				text = sqlparser.String(n)
			}
			if calls[text]++; calls[text] > 1 {
				n.Over.PartitionBy = append(slices.Clip(n.Over.PartitionBy), sqlparser.NewStrVal([]byte(strconv.Itoa(calls[text]))))
			}
		}
		return true, nil
	}, s)
}

// orderByAliases replaces window functions in ORDER BY that the SELECT returns, too, by the names of their columns:
// go-mysql-server would find them ambiguous.
func orderByAliases(s *sqlparser.Select) {
	for _, order := range s.OrderBy {
		if f, ok := order.Expr.(*sqlparser.FuncExpr); !ok || f.Over == nil {
			continue
		}
		text := sqlparser.String(order.Expr)
		for _, e := range s.SelectExprs {
			column, ok := e.(*sqlparser.AliasedExpr)
			if !ok || sqlparser.String(column.Expr) != text {
				continue
			}
			if column.As.IsEmpty() {
				column.As = sqlparser.NewColIdent(cmp.Or(column.InputExpression, text))
			}
			order.Expr = &sqlparser.ColName{Name: column.As}
			break
		}
	}
}

// tellApart makes go-mysql-server distinguish windows that differ only in the end of their frame:
// it partitions them by different constants, which changes nothing else. go-mysql-server
// identifies window functions by their text, in which every frame with an unbounded start also
// has an unbounded end. texts are the frames of the SELECT so far.
func tellApart(over *sqlparser.Over, texts map[string]bool) {
	if over.Frame == nil || over.Frame.Extent.Start.Type != sqlparser.UnboundedPreceding {
		return
	}
	text := sqlparser.String(over.Frame)
	texts[text] = true
	if len(texts) > 1 {
		by := sqlparser.NewStrVal([]byte(text))
		over.PartitionBy = append(slices.Clip(over.PartitionBy), by)
	}
}

// misplaced refuses window functions in a clause, but not in the queries within it.
func misplaced(clause sqlparser.SQLNode) error {
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Select:
			return false, nil
		case *sqlparser.FuncExpr:
			if n.Over != nil {
				return false, myerr.WindowMisplaced.New(n.Name.Lowered())
			}
		}
		return true, nil
	}, clause)
}

// eachOver calls f with each OVER of a SELECT, but not of the SELECTs within it.
func eachOver(s *sqlparser.Select, f func(*sqlparser.Over) error) error {
	return sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Select:
			return n == s, nil
		case *sqlparser.Over:
			if n != nil {
				return true, f(n)
			}
		}
		return true, nil
	}, s)
}

// namedWindows are the windows that a SELECT names in WINDOW.
type namedWindows struct {
	defined map[string]*sqlparser.WindowDef
	open    map[string]bool // windows that are being resolved
}

// resolve copies the definition of the window that def refers to into def.
func (w namedWindows) resolve(def *sqlparser.WindowDef) error {
	if def.NameRef.IsEmpty() {
		return nil
	}
	name := def.NameRef.Lowered()
	base := w.defined[name]
	switch {
	case base == nil:
		return myerr.NoSuchWindow.New(def.NameRef.String())
	case w.open[name]:
		return myerr.CircularWindows.New()
	}
	w.open[name] = true
	err := w.resolve(base)
	delete(w.open, name)
	if err != nil {
		return err
	}
	return inherit(def, base)
}

// inherit copies the referenced window's clauses. OVER w uses that window unchanged; OVER (w
// ...) and other definitions add to it.
func inherit(def, base *sqlparser.WindowDef) error {
	isSame := def.Name.IsEmpty() && len(def.PartitionBy) == 0 && len(def.OrderBy) == 0 && def.Frame == nil
	switch {
	case len(def.PartitionBy) > 0:
		return myerr.WindowPartitioned.New()
	case len(def.OrderBy) > 0 && len(base.OrderBy) > 0:
		return myerr.WindowOrderedTwice.New(windowName(def), base.Name.String())
	case base.Frame != nil && !isSame:
		return myerr.WindowFramed.New(base.Name.String())
	}
	def.NameRef = sqlparser.ColIdent{}
	def.PartitionBy = base.PartitionBy
	if len(def.OrderBy) == 0 {
		def.OrderBy = base.OrderBy
	}
	if isSame {
		def.Frame = base.Frame
	}
	return nil
}

// windowName returns the name of a window for error messages.
func windowName(def *sqlparser.WindowDef) string {
	if def.Name.IsEmpty() {
		return unnamedWindow
	}
	return def.Name.String()
}
