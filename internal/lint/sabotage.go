package lint

import (
	"go/ast"
	"go/token"
)

// checkSabotage forbids sabotage.Skip, which leaves out a step of a protocol, outside of tests.
func checkSabotage(_ string, files []*file, report func(*file, token.Pos, string)) {
	for _, f := range files {
		if f.isTest {
			continue
		}
		for _, spec := range f.ast.Imports {
			if importPath(spec) != module+"/internal/sabotage" {
				continue
			}
			name := localName(spec)
			eachUse(f, name, func(sel *ast.SelectorExpr) {
				if sel.Sel.Name == "Skip" {
					report(f, sel.Pos(), name+".Skip outside of a test")
				}
			})
		}
	}
}
