package lint

import (
	"go/ast"
	"go/token"
	"slices"
)

// checkRanks requires mutexes to be those of internal/lockrank, which orders them.
func checkRanks(dir string, files []*file, report func(*file, token.Pos, string)) {
	if !slices.Contains(simulated, dir) && !slices.Contains(ranked, dir) {
		return
	}
	for _, f := range files {
		if f.isTest {
			continue
		}
		for _, spec := range f.ast.Imports {
			if importPath(spec) != "sync" {
				continue
			}
			name := localName(spec)
			eachUse(f, name, func(sel *ast.SelectorExpr) {
				if sel.Sel.Name == "Mutex" || sel.Sel.Name == "RWMutex" {
					report(f, sel.Pos(), name+"."+sel.Sel.Name+" has no rank; use one of internal/lockrank")
				}
			})
		}
	}
}
