package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// messageConstants match the constants of a package that name a call or a shipped function.
// messageTypes match those that name a record or a message.
var messageConstants = map[string]*regexp.Regexp{
	"txn/record":            regexp.MustCompile(`^$`),
	"txn/message":           regexp.MustCompile(`^$`),
	"txn/worker":            regexp.MustCompile(`^[Hh]andler[A-Z]`),
	"recovery/membership":   regexp.MustCompile(`^kind[A-Z]`),
	"recovery/transactions": regexp.MustCompile(`^kind[A-Z]`),
	"farm":                  regexp.MustCompile(`^kind[A-Z]`),
	"index/hash":            regexp.MustCompile(`^handler[A-Z]`),
}

var messageTypes = map[string]string{"txn/record": "Kind", "txn/message": "Kind"}

// messageNames are names in the paper for constants with other names in the code.
var messageNames = map[string][]string{
	"Replicate":     {"REPLICATE-TX-STATE"},
	"kindReplicate": {"REPLICATE-TX-STATE"},
	"kindVote":      {"RECOVERY-VOTE"},
	"kindOutcome":   {"COMMIT-RECOVERY", "ABORT-RECOVERY"},
	"kindNewConfig": {"NEW-CONFIG", "NEW-CONFIG-ACK"},
	"Kinds":         {}, // how many there are
	"kinds":         {},
}

var lowerFirst = regexp.MustCompile(`^(kind|[Hh]andler)`)

// nameOf returns NEW-CONFIG for kindNewConfig.
func nameOf(constant string) string {
	var b strings.Builder
	for i, r := range lowerFirst.ReplaceAllString(constant, "") {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// docs/internals/messages.md names all messages, and nothing else.
func TestMessagesAreInTheTables(t *testing.T) {
	there := namesInCode(t)
	text, err := os.ReadFile("../../docs/internals/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := namesInTables(string(text))
	for name, constant := range there {
		if !slices.Contains(documented, name) {
			t.Errorf("docs/internals/messages.md has no %s (%s)", name, constant)
		}
	}
	for _, name := range documented {
		if there[name] == "" {
			t.Errorf("docs/internals/messages.md has %s, which is not in the code", name)
		}
	}
	if len(there) < 50 {
		t.Errorf("only %d names were found", len(there))
	}
}

// namesInCode returns the constants by name.
func namesInCode(t *testing.T) map[string]string {
	root := os.DirFS("../..")
	names := make(map[string]string)
	for dir, pattern := range messageConstants {
		entries, err := fs.ReadDir(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			f, err := parse(root, path.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			for c, of := range constantsOf(f.ast) {
				if !pattern.MatchString(c) && (of == "" || of != messageTypes[dir]) {
					continue
				}
				as, isNamed := messageNames[c]
				if !isNamed {
					as = []string{nameOf(c)}
				}
				for _, name := range as {
					names[name] = dir + "." + c
				}
			}
		}
	}
	return names
}

// constantsOf returns the constants of a file that are declared outside of functions, each with
// the type of the first of its declaration.
func constantsOf(f *ast.File) map[string]string {
	constants := make(map[string]string)
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		of := ""
		if name, ok := g.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); ok {
			of = name.Name
		}
		for _, s := range g.Specs {
			for _, n := range s.(*ast.ValueSpec).Names {
				constants[n.Name] = of
			}
		}
	}
	return constants
}

var capitals = regexp.MustCompile(`[A-Z]+(-[A-Z]+)*`)

// namesInTables returns the names in capitals in the first column of the tables.
func namesInTables(text string) (names []string) {
	for _, line := range strings.Split(text, "\n") {
		if first, _, isRow := strings.Cut(strings.TrimPrefix(line, "|"), "|"); isRow && strings.HasPrefix(line, "|") {
			names = append(names, capitals.FindAllString(first, -1)...)
		}
	}
	return names
}
