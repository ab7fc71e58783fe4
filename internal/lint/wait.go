package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// The packages below sql/wire run in the simulator, which must control what runs when, and get the
// same results each time: they start goroutines and wait through a clock.Clock, and do not depend on
// the order of a map.

// waitsOf lists, by package, the names that wait for something or that hide a wait.
var waitsOf = map[string][]string{
	"runtime": {"Gosched", "Goexit", "LockOSThread"},
	"sync":    {"Cond", "NewCond", "WaitGroup"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
}

// checkWait requires that simulated packages wait through a clock only.
func checkWait(dir string, files []*file, report func(*file, token.Pos, string)) {
	if !slices.Contains(simulated, dir) {
		return
	}
	patient := patientLocks(files)
	for _, f := range files {
		if f.isTest || slices.Contains(unsimulated, f.name) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			what := wait(n)
			if name := locked(n); what == "" && patient[name] {
				what = name + ".Lock, although this mutex is locked through a clock elsewhere"
			}
			if what != "" {
				report(f, n.Pos(), what+"; wait through a clock.Clock")
			}
			return true
		})
		for _, spec := range f.ast.Imports {
			banned := waitsOf[importPath(spec)]
			if banned == nil {
				continue
			}
			name := localName(spec)
			eachUse(f, name, func(sel *ast.SelectorExpr) {
				if slices.Contains(banned, sel.Sel.Name) {
					report(f, sel.Pos(), name+"."+sel.Sel.Name+"; wait through a clock.Clock")
				}
			})
		}
	}
}

// wait returns the name of a node that starts a goroutine or waits for another, and "" for other
// nodes.
func wait(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go statement"
	case *ast.SelectStmt:
		return "select"
	case *ast.SendStmt:
		return "sends on a channel"
	case *ast.ChanType:
		return "channel"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "receives from a channel"
		}
	}
	return ""
}

// patientLocks returns the names of mutexes that may be held across waits: somewhere they are
// locked with Clock.Lock(&x.name).
func patientLocks(files []*file) map[string]bool {
	names := make(map[string]bool)
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || f.isTest || lastName(call.Fun) != "Lock" || len(call.Args) != 1 {
				return true
			}
			if u, ok := call.Args[0].(*ast.UnaryExpr); ok && u.Op == token.AND && lastName(u.X) != "Mutex" {
				names[lastName(u.X)] = true
			}
			return true
		})
	}
	return names
}

// locked returns the name of the mutex in a call of its Lock, or nothing.
func locked(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 0 {
		return ""
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Lock" {
		return lastName(sel.X)
	}
	return ""
}

// lastName returns the name that an identifier or a selector ends with.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// orderMarks are comments that permit a loop over what looks like a map: its order has no effect,
// or the loop is over something that has an order.
var orderMarks = []string{"// any order", "// in order"}

// checkOrder reports loops over maps without a mark. Types are not known here: a name counts as a map
// if mapFields returns it, or the function makes a map with that name.
func checkOrder(dir string, files []*file, report func(*file, token.Pos, string)) {
	if !slices.Contains(simulated, dir) {
		return
	}
	fields := mapFields(files)
	for _, f := range files {
		if f.isTest {
			continue
		}
		marked := f.marked(orderMarks)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if r, ok := n.(*ast.RangeStmt); ok && !marked[f.line(r.Pos())] {
				if name := mapName(r.X, fields); name != "" {
					report(f, r.Pos(), "ranges over "+name+", a map; sort its keys, or say "+orderMarks[0])
				}
			}
			return true
		})
	}
}

// mapName returns the name of a map, or nothing if x does not look like one.
func mapName(x ast.Expr, fields map[string]bool) string {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if fields[x.Sel.Name] {
			return x.Sel.Name
		}
	case *ast.Ident:
		if x.Obj != nil && declaresMap(x.Obj.Decl, x.Name) {
			return x.Name
		}
	}
	return ""
}

// mapFields returns the names of fields that are maps in every struct with a field of that name.
func mapFields(files []*file) map[string]bool {
	fields := make(map[string]bool)
	other := make(map[string]bool)
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok || f.isTest {
				return true
			}
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					if isMap(field.Type) {
						fields[name.Name] = true
					} else {
						other[name.Name] = true
					}
				}
			}
			return true
		})
	}
	for name := range other {
		delete(fields, name)
	}
	return fields
}

// declaresMap reports whether a declaration makes the name a map.
func declaresMap(decl any, name string) bool {
	switch d := decl.(type) {
	case *ast.Field:
		return isMap(d.Type)
	case *ast.ValueSpec:
		return isMap(d.Type) || (len(d.Values) == 1 && makesMap(d.Values[0]))
	case *ast.AssignStmt:
		for i, left := range d.Lhs {
			if id, ok := left.(*ast.Ident); ok && id.Name == name && len(d.Lhs) == len(d.Rhs) {
				return makesMap(d.Rhs[i])
			}
		}
	}
	return false
}

// makesMap reports whether an expression is make(map...) or a literal of a map.
func makesMap(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return isMap(e.Type)
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return ok && id.Name == "make" && isMap(e.Args[0])
	}
	return false
}

func isMap(t ast.Expr) bool {
	_, ok := t.(*ast.MapType)
	return ok
}

// marked returns the lines that have a comment beginning with one of marks.
func (f *file) marked(marks []string) map[int]bool {
	lines := make(map[int]bool)
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(c.Text, mark) }) {
				lines[f.line(c.Pos())] = true
			}
		}
	}
	return lines
}
