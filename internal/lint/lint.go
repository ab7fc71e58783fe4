// Package lint holds the rules of the repository that no compiler knows, and a
// test that every file keeps them:
//
//   - layers: a package imports only from lines above its own in the table of
//     table.go, and only packages that are in the table exist;
//   - modules: core packages import the standard library and nothing else, with
//     the exceptions listed; go-mysql-server stays in the SQL packages;
//   - unsafe and cgo only where bytes are shared with a file or a NIC;
//   - clock: time and randomness come from internal/clock;
//   - wait, order: code that runs in the simulator starts goroutines and waits
//     through a clock, and does not depend on the order of a map;
//   - lockrank: mutexes have ranks;
//   - locks: a function that needs a held lock says so by its name, and a function
//     that takes a lock releases it;
//   - sabotage: only tests break protocols;
//   - doc: every package has a package comment;
//   - todo: a mark of unfinished work names what would settle it;
//   - glossary: exported names have the words of docs/glossary.md, in one meaning;
//   - length: no function is longer than functionLinesMax lines.
//
// It reads and parses the files. Asking the go command instead would be shorter,
// but a test's cached result would then survive changes of the files. It checks all files,
// whatever their build tags. For test files only the rules modules, unsafe and todo
// count: tests may use a clock, and packages from below their own line.
package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Problem is one violation of a rule.
type Problem struct {
	File string // path from the root of the repository
	Line int
	Rule string
	Text string
}

func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Rule, p.Text) }

// A file is one parsed source file.
type file struct {
	name   string // path from the root of the repository
	dir    string // the folder of its package, from the root of the repository; "." is the root
	isTest bool
	fset   *token.FileSet
	ast    *ast.File
}

// line returns where a node is.
func (f *file) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// A rule looks at one package: the files of one folder.
type rule struct {
	name  string
	check func(dir string, files []*file, report func(f *file, pos token.Pos, text string))
}

var rules = []rule{
	{"layers", checkLayers},
	{"modules", checkModules},
	{"unsafe", checkUnsafe},
	{"clock", checkClock},
	{"wait", checkWait},
	{"order", checkOrder},
	{"lockrank", checkRanks},
	{"sabotage", checkSabotage},
	{"doc", checkDoc},
	{"todo", checkTodo},
	{"length", checkLength},
	{"format", checkFormat},
}

// Check parses all Go files below the root of fsys and returns what violates a
// rule, by file and line. It fails for files that cannot be read or parsed.
func Check(fsys fs.FS) ([]Problem, error) {
	packages, err := load(fsys)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for dir, files := range packages {
		for _, r := range append(rules, locksRule(packages)) {
			r.check(dir, files, func(f *file, pos token.Pos, text string) {
				problems = append(problems, Problem{File: f.name, Line: f.line(pos), Rule: r.name, Text: text})
			})
		}
	}
	g, err := readGlossary(fsys)
	if err != nil {
		return nil, err
	}
	if g != nil {
		problems = append(problems, g.check(packages)...)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Rule, b.Rule))
	})
	return problems, nil
}

// load parses the files, by folder. Folders that the go command ignores are
// ignored here.
func load(fsys fs.FS) (map[string][]*file, error) {
	packages := make(map[string][]*file)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || base[0] == '.' || base[0] == '_' {
			return nil
		}
		f, err := parse(fsys, name)
		if err != nil {
			return err
		}
		packages[f.dir] = append(packages[f.dir], f)
		return nil
	})
	return packages, err
}

func parse(fsys fs.FS, name string) (*file, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	f := &file{name: name, dir: path.Dir(name), isTest: strings.HasSuffix(name, "_test.go"), fset: token.NewFileSet()}
	if f.ast, err = parser.ParseFile(f.fset, name, source, parser.ParseComments); err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	return f, nil
}
