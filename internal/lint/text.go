package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
)

// checkDoc demands one package comment, of the form that go doc expects.
func checkDoc(dir string, files []*file, report func(*file, token.Pos, string)) {
	var first *file
	for _, f := range files {
		if f.isTest {
			continue
		}
		if first == nil {
			first = f
		}
		want := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			want = "Command "
		}
		if strings.HasPrefix(f.ast.Doc.Text(), want) {
			return
		}
	}
	if first != nil {
		report(first, first.ast.Package, fmt.Sprintf("package %s has no package comment", dir))
	}
}

// openEnd matches the marks of unfinished work. A mark is allowed if settled matches it too: it names
// in parentheses what would settle the matter.
var (
	openEnd = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	settled = regexp.MustCompile(`\bTODO\([a-z][^()]*\): \S`)
)

func checkTodo(_ string, files []*file, report func(*file, token.Pos, string)) {
	for _, f := range files {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if len(openEnd.FindAllString(c.Text, -1)) > len(settled.FindAllString(c.Text, -1)) {
					report(f, c.Pos(), "open end without what would settle it: write TO"+"DO(noun): ...")
				}
			}
		}
	}
}

// indexedVerb finds verbs that choose their argument by its number.
var indexedVerb = regexp.MustCompile(`%[-+# 0-9.*]*\[[0-9]+\]`)

// checkFormat forbids format verbs that name their argument by its number, like %[2]s, outside of
// tests. Such a number is easily wrong by one, and no compiler notices; an error text that names the
// wrong file to remove costs users their data.
func checkFormat(_ string, files []*file, report func(*file, token.Pos, string)) {
	for _, f := range files {
		if f.isTest {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && indexedVerb.MatchString(lit.Value) {
				report(f, lit.Pos(), "format with the number of an argument: give the argument again")
			}
			return true
		})
	}
}

// checkLength counts a function from its first line to its last.
func checkLength(_ string, files []*file, report func(*file, token.Pos, string)) {
	eachFunction(files, func(f *file, fn *ast.FuncDecl, lines int) {
		if lines > functionLinesMax {
			report(f, fn.Pos(), fmt.Sprintf("function %s has %d lines", fn.Name.Name, lines))
		}
	})
}

// LongFunctions returns the functions to look at twice, as problems.
func LongFunctions(fsys fs.FS) ([]Problem, error) {
	packages, err := load(fsys)
	if err != nil {
		return nil, err
	}
	var long []Problem
	for _, files := range packages {
		eachFunction(files, func(f *file, fn *ast.FuncDecl, lines int) {
			if lines > functionLinesMany {
				long = append(long, Problem{f.name, f.line(fn.Pos()), "length", fmt.Sprintf("%s has %d lines", fn.Name.Name, lines)})
			}
		})
	}
	return long, nil
}

func eachFunction(files []*file, visit func(f *file, fn *ast.FuncDecl, lines int)) {
	for _, f := range files {
		if f.isTest {
			continue
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				visit(f, fn, f.line(fn.End())-f.line(fn.Pos())+1)
			}
		}
	}
}
