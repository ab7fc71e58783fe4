package costs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each function in the table is there, and has one cost only: what is renamed would be
// counted as something else.
func TestTableNamesWhatThereIs(t *testing.T) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	functions := make(map[string][]string) // by folder
	of := func(folder, name string) []string {
		if _, ok := functions[folder]; !ok {
			functions[folder] = functionsIn(t, folder, name)
		}
		return functions[folder]
	}
	seen := make(map[string]bool)
	for _, c := range table {
		if c.Name == "" || c.Why == "" || len(c.own)+len(c.all) == 0 {
			t.Errorf("%+v lacks something", c)
		}
		for _, name := range slices.Concat(c.own, c.all) {
			if seen[name] {
				t.Errorf("%s has two costs", name)
			}
			seen[name] = true
			if strings.HasPrefix(name, "github.com/") {
				continue // of a library
			}
			base := strings.LastIndexByte(name, '/') + 1
			dot := base + strings.IndexByte(name[base:], '.')
			folder := filepath.Join("../..", name[:dot])
			if isForeign(name) {
				folder = filepath.Join(library, name[:dot])
			}
			if !slices.ContainsFunc(of(folder, name[:dot]), func(f string) bool { return f == name || strings.HasSuffix(name, ".") && strings.HasPrefix(f, name) }) {
				t.Errorf("%s: there is no function %s", c.Name, name)
			}
		}
	}
}

// functionsIn returns the functions of a package as profiles name them.
func functionsIn(t *testing.T, folder, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names = append(names, pkg+"."+receiver(f)+f.Name.Name)
			}
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	switch of := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return "(*" + typeName(of.X) + ")."
	default:
		return typeName(of) + "."
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IndexExpr: // of a generic type
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
