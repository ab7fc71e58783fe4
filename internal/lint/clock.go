package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// timeEverywhere lists functions that read the process's clock: only clockUsers may use them.
// timeInCore lists functions that wait for that clock: core packages may not use them either,
// because the simulator must control their waiting.
var (
	timeEverywhere = []string{"Now", "Since", "Until"}
	timeInCore     = []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
)

// randFromSeed lists the names of packages math/rand that do not use the process's own source of
// randomness, which nobody can replay.
var randFromSeed = []string{
	"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf",
}

// checkClock requires that packages take time and randomness from a clock.Clock.
func checkClock(dir string, files []*file, report func(*file, token.Pos, string)) {
	if matches(dir, clockUsers) {
		return
	}
	_, isCore := core[dir]
	for _, f := range files {
		if f.isTest {
			continue
		}
		for _, spec := range f.ast.Imports {
			forbidden := forbiddenOf(importPath(spec), isCore)
			if forbidden == nil {
				continue
			}
			name := localName(spec)
			if name == "." {
				report(f, spec.Pos(), fmt.Sprintf("imports all names of %s", importPath(spec)))
				continue
			}
			eachUse(f, name, func(sel *ast.SelectorExpr) {
				if forbidden(sel.Sel.Name) {
					report(f, sel.Pos(), fmt.Sprintf("%s.%s; take it from a clock.Clock", name, sel.Sel.Name))
				}
			})
		}
	}
}

// forbiddenOf returns which names of an imported package may not be used, or
// nil if all may.
func forbiddenOf(importPath string, isCore bool) func(name string) bool {
	switch importPath {
	case "time":
		return func(name string) bool {
			return slices.Contains(timeEverywhere, name) || (isCore && slices.Contains(timeInCore, name))
		}
	case "math/rand", "math/rand/v2":
		return func(name string) bool { return !slices.Contains(randFromSeed, name) }
	}
	return nil
}

// localName is the name by which a file refers to an imported package.
func localName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(strings.TrimSuffix(importPath(spec), "/v2"))
}

// eachUse visits the selectors of a package in a file. A local variable of the
// same name is not the package.
func eachUse(f *file, name string, visit func(*ast.SelectorExpr)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == name && id.Obj == nil {
			visit(sel)
		}
		return true
	})
}
