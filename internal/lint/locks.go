package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// lockedNames are the packages that keep two rules: the name of a function that needs a held lock
// ends in Locked, and the function that takes a lock also releases it.
var lockedNames = []string{"txn", "txn/record", "txn/message", "txn/route", "txn/step", "txn/wait", "txn/participant", "txn/evidence", "txn/worker", "recovery/membership", "recovery/transactions", "recovery/data"}

// locksBelow maps a package to another one whose locks it takes: it calls that package's functions
// named Locked by the same rule as its own.
var locksBelow = map[string]string{"txn": "txn/worker"}

// lockMarks begin the comment on a call of a function named Locked by a caller that does not hold
// the lock itself: the comment gives the reason.
var lockMarks = []string{"// locked: "}

// unlocks maps each method that takes a lock to the method that releases it.
var unlocks = map[string]string{"lock": "unlock", "Lock": "Unlock", "RLock": "RUnlock", "TryLock": "Unlock"}

// locksRule returns the rule of locks for the given packages.
func locksRule(packages map[string][]*file) rule {
	return rule{"locks", func(dir string, files []*file, report func(*file, token.Pos, string)) {
		if slices.Contains(lockedNames, dir) {
			checkLocks(files, functionsNamedLocked(slices.Concat(files, packages[locksBelow[dir]])), report)
		}
	}}
}

// checkLocks looks at the functions of a package, except those that are themselves named lock or unlock. The
// keys of own are the names of the functions that need a held lock.
func checkLocks(files []*file, own map[string]bool, report func(*file, token.Pos, string)) {
	for _, f := range files {
		if f.isTest {
			continue
		}
		marked := f.marked(lockMarks)
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil && unlocks[d.Name.Name] == "" && !strings.EqualFold(d.Name.Name, "unlock") {
				l := lockScope{own: own, report: func(pos token.Pos, text string) {
					if !marked[f.line(pos)] {
						report(f, pos, text)
					}
				}}
				l.check(d.Body, isNamedLocked(d.Name.Name))
			}
		}
	}
}

func isNamedLocked(name string) bool { return strings.HasSuffix(name, "Locked") && name != "Locked" }

// functionsNamedLocked returns the names of the files' functions that end in Locked.
func functionsNamedLocked(files []*file) map[string]bool {
	names := make(map[string]bool)
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && !f.isTest && isNamedLocked(d.Name.Name) {
				names[d.Name.Name] = true
			}
		}
	}
	return names
}

// A lockScope checks one function, and the function literals in it.
type lockScope struct {
	own    map[string]bool
	report func(token.Pos, string)
}

// check looks at the body of a function. isHeld says that a lock is held when it is called.
func (l *lockScope) check(body *ast.BlockStmt, isHeld bool) {
	// Both map the call that releases a lock, as text, to where the lock is taken or released.
	taken, given := make(map[string]token.Pos), make(map[string]token.Pos)
	var inner []*ast.FuncLit
	var calls []*ast.CallExpr
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			inner = append(inner, n)
			return false
		case *ast.CallExpr:
			calls = append(calls, n)
			noteLock(n, taken, given)
		}
		return true
	})
	for lock, pos := range taken { // any order: problems are sorted
		if _, ok := given[lock]; !ok {
			l.report(pos, lock+" is not called by the function that takes the lock")
		}
	}
	for lock, pos := range given { // any order
		if _, ok := taken[lock]; !ok {
			l.report(pos, lock+" is called by a function that has not taken the lock")
		}
	}
	isHeld = isHeld || len(taken) > 0
	for _, c := range calls {
		if name := lastName(c.Fun); l.own[name] && !isHeld {
			l.report(c.Pos(), name+" is called by a function that neither takes a lock nor ends in Locked")
		}
	}
	for _, f := range inner {
		l.check(f.Body, isHeld)
	}
}

// noteLock records a call in taken if it takes a lock, and in given if it releases one. Both maps have
// the same key for a lock: its expression, and the name of the method that releases it.
func noteLock(c *ast.CallExpr, taken, given map[string]token.Pos) {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	name, of := sel.Sel.Name, sel.X
	if u, ok := argument(c).(*ast.UnaryExpr); ok && strings.EqualFold(lastName(of), "clock") { // Clock.Lock(&mu)
		of = u.X
	} else if len(c.Args) > 0 {
		return
	}
	if give, ok := unlocks[name]; ok {
		taken[types.ExprString(of)+"."+give] = c.Pos()
		return
	}
	for _, give := range unlocks { // any order
		if name == give {
			given[types.ExprString(of)+"."+give] = c.Pos()
		}
	}
}

// argument returns the only argument of a call, or nil.
func argument(c *ast.CallExpr) ast.Expr {
	if len(c.Args) == 1 {
		return c.Args[0]
	}
	return nil
}
