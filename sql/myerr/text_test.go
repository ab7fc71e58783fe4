package myerr

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// Every text that an error of this program is made of loses its package's name: of all
// packages below the listener, those of its tests and tools left out.
func TestClientsHearOfNoPackage(t *testing.T) {
	const root = "../.."
	prefix := regexp.MustCompile(`^([a-z]+): `)
	texts := 0
	for _, dir := range []string{root, root + "/sql", root + "/txn", root + "/region", root + "/catalog", root + "/cluster", root + "/farm", root + "/recovery", root + "/nvram", root + "/rdma", root + "/index"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path == root:
				return nil
			case d.IsDir():
				if dir == root || d.Name() == "enginetest" || strings.HasSuffix(d.Name(), "test") {
					return fs.SkipDir
				}
				return nil
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			f, err := goparser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				text, ok := errorText(n)
				if !ok {
					return true
				}
				texts++
				if own := f.Name.Name + ": "; strings.HasPrefix(text, own) && PlainText("farmsql: "+text) != text[len(own):] {
					t.Errorf("%s: %q begins with a name that clients hear; add it to packages", path, text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if texts < 100 {
		t.Errorf("only %d texts found", texts)
	}
	for _, c := range stored {
		if got := Of(c.err).Message; prefix.MatchString(got) {
			t.Errorf("%v: a client hears %q", c.err, got)
		}
	}
	if got := Of(&txn.AbortError{}).Message; got != Deadlock.format {
		t.Errorf("a conflict: %q", got)
	}
}

// errorText returns the text of a call that makes an error.
func errorText(n ast.Node) (string, bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != "Errorf" && fun.Sel.Name != "New" {
		return "", false
	}
	if of, ok := fun.X.(*ast.Ident); !ok || of.Name != "fmt" && of.Name != "errors" {
		return "", false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}
