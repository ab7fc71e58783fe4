package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// importPath returns the path that an import names.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has accepted it: cannot happen
	}
	return p
}

// ownFolder returns the folder of a package of this module.
func ownFolder(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// isStd reports whether a package is of the standard library, whose paths begin
// without a domain.
func isStd(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// within reports whether importPath is one of the roots or below one.
func within(importPath string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return importPath == root || strings.HasPrefix(importPath, root+"/")
	})
}

// matches reports whether dir is listed, or below a listed "x/...".
func matches(dir string, list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		below, all := strings.CutSuffix(entry, "...")
		return dir == entry || (all && strings.HasPrefix(dir, below))
	})
}

// layerOf returns the line of a package in the table, or -1.
func layerOf(dir string) int {
	return slices.IndexFunc(layers, func(line []string) bool { return slices.Contains(line, dir) })
}

func checkLayers(dir string, files []*file, report func(*file, token.Pos, string)) {
	layer := layerOf(dir)
	if layer < 0 {
		report(files[0], files[0].ast.Package, fmt.Sprintf("package %s is not in the table of internal/lint", dir))
		return
	}
	eachImport(files, func(f *file, spec *ast.ImportSpec) {
		target, ok := ownFolder(importPath(spec))
		if !ok || f.isTest {
			return
		}
		switch at := layerOf(target); {
		case at < 0:
			report(f, spec.Pos(), fmt.Sprintf("imports %s, which is not in the table of internal/lint", target))
		case at >= layer:
			report(f, spec.Pos(), fmt.Sprintf("%s imports %s, which is not above it", dir, target))
		}
	})
}

func checkModules(dir string, files []*file, report func(*file, token.Pos, string)) {
	allowed, isCore := core[dir]
	eachImport(files, func(f *file, spec *ast.ImportSpec) {
		p := importPath(spec)
		if _, ours := ownFolder(p); ours || isStd(p) {
			return
		}
		if within(p, mysqlServer) {
			if !slices.Contains(mysqlUsers, dir) {
				report(f, spec.Pos(), fmt.Sprintf("%s imports %s; only %s may", dir, p, strings.Join(mysqlUsers, ", ")))
			}
			return
		}
		if isCore && !f.isTest && !slices.Contains(allowed, p) {
			report(f, spec.Pos(), fmt.Sprintf("core package %s imports %s", dir, p))
		}
	})
}

func checkUnsafe(dir string, files []*file, report func(*file, token.Pos, string)) {
	if matches(dir, unsafeUsers) {
		return
	}
	eachImport(files, func(f *file, spec *ast.ImportSpec) {
		if p := importPath(spec); p == "unsafe" || p == "C" {
			report(f, spec.Pos(), fmt.Sprintf("%s imports %s; only %s may", dir, p, strings.Join(unsafeUsers, ", ")))
		}
	})
}

func eachImport(files []*file, visit func(*file, *ast.ImportSpec)) {
	for _, f := range files {
		for _, spec := range f.ast.Imports {
			visit(f, spec)
		}
	}
}
