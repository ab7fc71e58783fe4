package costs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Each function in the table exists, and has only one cost: a renamed function would count as
// another cost.
func TestTableNamesWhatThereIs(t *testing.T) {
	for _, complaint := range complaints(t, table) {
		t.Error(complaint)
	}
}

// The checks notice functions in the table that do not exist, or that occur twice.
func TestTableIsRefused(t *testing.T) {
	for says, c := range map[string]Cost{
		"there is no function txn.(*Tx).Comit":           {Name: "a", Why: "b", own: []string{"txn.(*Tx).Comit"}},
		"there is no function txn.(*Txn).":               {Name: "a", Why: "b", own: []string{"txn.(*Txn)."}},
		"there is no function transaction.":              {Name: "a", Why: "b", all: []string{"transaction."}},
		"there is no function runtime.mallocfree":        {Name: "a", Why: "b", all: []string{"runtime.mallocfree"}},
		"there is no module github.com/google/b-trees":   {Name: "a", Why: "b", own: []string{"github.com/google/b-trees."}},
		"of a library only the whole package can be had": {Name: "a", Why: "b", own: []string{"github.com/google/btree.New"}},
		"txn. has two costs":                             {Name: "a", Why: "b", own: []string{"txn.", "txn."}},
		"a lacks something":                              {Name: "a", own: []string{"txn."}},
	} {
		if got := complaints(t, []Cost{c}); len(got) != 1 || !strings.Contains(got[0], says) {
			t.Errorf("%q, want %q", got, says)
		}
	}
}

// complaints are what is wrong with a table.
func complaints(t *testing.T, table []Cost) (all []string) {
	t.Helper()
	complain := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	functions := make(map[string][]string) // by folder
	seen := make(map[string]bool)
	for _, c := range table {
		if c.Name == "" || c.Why == "" || len(c.own)+len(c.all) == 0 {
			complain("%s lacks something", c.Name)
		}
		for _, name := range slices.Concat(c.own, c.all) {
			if seen[name] {
				complain("%s has two costs", name)
			}
			seen[name] = true
			if strings.HasPrefix(name, "github.com/") {
				if complaint := inLibrary(t, name); complaint != "" {
					complain("%s: %s", c.Name, complaint)
				}
				continue
			}
			pkg := packageOf(name)
			folder := filepath.Join(module, pkg)
			if isForeign(name) {
				folder = filepath.Join(library(t), pkg)
			}
			if _, ok := functions[folder]; !ok {
				functions[folder] = functionsIn(t, folder, pkg)
			}
			if !slices.ContainsFunc(functions[folder], func(f string) bool { return f == name || strings.HasSuffix(name, ".") && strings.HasPrefix(f, name) }) {
				complain("%s: there is no function %s", c.Name, name)
			}
		}
	}
	return all
}

// module is the folder of this module.
const module = "../.."

// packageOf is the package of a name in the table.
func packageOf(name string) string {
	base := strings.LastIndexByte(name, '/') + 1
	return name[:base+strings.IndexByte(name[base:], '.')]
}

// library returns the folder of Go's library.
var library = func() func(t *testing.T) string {
	find := sync.OnceValues(func() ([]byte, error) { return exec.Command("go", "env", "GOROOT").Output() })
	return func(t *testing.T) string {
		t.Helper()
		root, err := find()
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(strings.TrimSpace(string(root)), "src")
	}
}()

// inLibrary returns a complaint about a name in a library, or "".
func inLibrary(t *testing.T, name string) (complaint string) {
	t.Helper()
	lib, isWhole := strings.CutSuffix(name, ".")
	if !isWhole {
		return name + ": of a library only the whole package can be had, for its functions are not looked at"
	}
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), lib+" v") {
		return "there is no module " + lib
	}
	return ""
}

// without maps the packages of a benchmark that have no cost to the reason. Their functions count
// as their callers. Each entry includes all packages in its folder.
var without = map[string]string{
	"catalog":            "is asked when tables are opened",
	"cluster":            "is configurations, and leases, which have threads of their own",
	"farm":               "puts machines together",
	"internal/host":      "is asked when a database is opened",
	"internal/invariant": "is off in what is measured",
	"internal/lockrank":  "has sync.Mutex do the work in what is measured",
	"internal/protocol":  "is asked when machines meet and when a configuration changes",
	"internal/sabotage":  "is off in what is measured",
	"nvram":              "is loads and stores, which are those of what calls them",
	"rdma/call":          "carries leases and configurations",
	"rdma/local":         "takes no part in what is profiled: one machine, or machines that are processes",
	"rdma/tcp":           "takes no part in what is profiled: machines that are processes share memory",
	"rdma/verbs":         "takes no part, as rdma/tcp",
	"rdma/hosts":         "takes no part, as rdma/tcp and rdma/verbs, whose part it is",
	"recovery":           "works when machines fail",
	"sql":                "is not in native transactions",
	"txn/message":        "carries replies, validation and functions between machines, of which there is one in what is profiled",
	"txn/route":          "is loads, which are those of what calls them",
	"txn/step":           "is names",
	"txn/commitstate":    "is names, and comparisons that are made where they are used",
	"txn/evidence":       "works when machines fail",
	"txn/outcome":        "is errors",
}

// interfaces are packages without a cost, because they have hardly any code. Packages in their
// folders do have costs.
var interfaces = []string{"", "rdma"}

// reason returns the entry of without, or of interfaces, that covers a package; "" if there is none.
func reason(pkg string) string {
	for at := pkg; at != "."; at = path.Dir(at) {
		if _, ok := without[at]; ok || at == pkg && slices.Contains(interfaces, at) {
			return at + "/"
		}
		if at == "" {
			break
		}
	}
	return ""
}

// Each package of a native benchmark has a cost, or a reason to have none. Otherwise code that
// moves into a new package would not count as its former cost any more.
func TestEachPackageHasACost(t *testing.T) {
	named := make(map[string]bool)
	for _, c := range table {
		for _, name := range slices.Concat(c.own, c.all) {
			named[packageOf(name)] = true
		}
	}
	found := make(map[string]bool)
	for _, benchmark := range []string{"bench/tatp", "bench/tpcc", "bench/kv", "bench/tao"} {
		importsOf(t, benchmark, found)
	}
	for pkg := range found {
		if why := reason(pkg); (why != "") == named[pkg] {
			t.Errorf("package %q: it has a cost: %v, and a reason to have none: %q", pkg, named[pkg], why)
		}
	}
	for pkg := range without {
		if !found[pkg] {
			t.Errorf("there is no package %q", pkg)
		}
	}
}

// importsOf adds to found a package of this module, and all packages of the module that it imports.
func importsOf(t *testing.T, pkg string, found map[string]bool) {
	t.Helper()
	if found[pkg] {
		return
	}
	found[pkg] = true
	for _, file := range filesOf(t, filepath.Join(module, pkg)) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			if own, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`)+"/", Module); ok {
				importsOf(t, strings.TrimSuffix(own, "/"), found)
			}
		}
	}
}

// filesOf are the files of a folder's package, for all platforms and tags.
func filesOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// functionsIn returns the functions of a package as profiles name them.
func functionsIn(t *testing.T, folder, pkg string) (names []string) {
	t.Helper()
	for _, file := range filesOf(t, folder) {
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
