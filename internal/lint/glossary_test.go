package lint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const testGlossary = `# Glossary

| word | meaning |
|---|---|
| ledger (L) | what is truncated |
| lock, vote | the first phase; the second |

| not | but |
|---|---|
| land, heir | store |

| word | packages |
|---|---|
| ledger | ` + "`txn/record`, `internal/...`" + ` |
`

// The check reports each planted violation and nothing else. Names that follow the rules are no
// problem.
func TestGlossaryCatchesViolations(t *testing.T) {
	for name, c := range map[string]struct{ glossary, file, source, want string }{
		"clean":               {testGlossary, "txn/record/b.go", "func island() {}\ntype Ledgers []int", ""},
		"forbidden function":  {testGlossary, "txn/a.go", "func Land() {}", "txn/a.go:3: glossary: the name Land has the word land; not this, but: store"},
		"forbidden method":    {testGlossary, "txn/a.go", "type t int\nfunc (t) FilledHeir() {}", "the name FilledHeir has the word heir"},
		"forbidden field":     {testGlossary, "txn/a.go", "type t struct{ LandAt int }", "the name LandAt"},
		"forbidden constant":  {testGlossary, "txn/a.go", "const Heir = 1", "the name Heir"},
		"in an interface":     {testGlossary, "txn/a.go", "type t interface{ Land() }", "the name Land"},
		"part of a word":      {testGlossary, "txn/a.go", "func Island() {}", ""},
		"not exported":        {testGlossary, "txn/a.go", "func land() {}", ""},
		"in a test":           {testGlossary, "txn/a_test.go", "func Land() {}", ""},
		"another meaning":     {testGlossary, "bench/tpcc/a.go", "type OpenLedger int", "bench/tpcc/a.go:3: glossary: the name OpenLedger has the word ledger, whose meaning belongs to txn/record, internal/..."},
		"another, plural":     {testGlossary, "bench/tpcc/a.go", "var Ledgers int", "the name Ledgers has the word ledger"},
		"a longer word":       {testGlossary, "bench/tpcc/a.go", "var Ledgerdemain int", ""},
		"below":               {testGlossary, "internal/sabotage/a.go", "const Ledger = 1", ""},
		"without a meaning":   {strings.Replace(testGlossary, "| ledger (L)", "| book", 1), "txn/a.go", "", "docs/glossary.md:14: glossary: ledger has packages and no meaning"},
		"without a use":       {testGlossary + "| vote | `cluster` |\n", "txn/a.go", "", "docs/glossary.md:15: glossary: no exported name has the word vote"},
		"without a glossary":  {"", "txn/a.go", "func Land() {}", ""},
		"of an unknown table": {testGlossary + "\n| a | b |\n|---|---|\n| c | d |\n", "txn/a.go", "", "docs/glossary.md:18: a table with the columns a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"txn/record/ledger.go": {Data: []byte("// Package p is a package.\npackage p\ntype Ledger int")},
				c.file:                 {Data: []byte("// Package p is a package.\npackage p\n" + c.source)},
			}
			if c.glossary != "" {
				fsys["docs/glossary.md"] = &fstest.MapFile{Data: []byte(c.glossary)}
			}
			problems, err := Check(fsys)
			problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.Rule != "glossary" })
			got := strings.TrimSpace(fmt.Sprint(problems))
			if err != nil {
				got = err.Error()
			}
			if c.want == "" && (len(problems) > 0 || err != nil) || !strings.Contains(got, c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

// Without this the rule might read a page without its tables.
func TestGlossaryIsRead(t *testing.T) {
	g, err := readGlossary(os.DirFS("../.."))
	if err != nil || g == nil || len(g.defined) < 50 || len(g.forbidden) < 20 || len(g.homes) < 10 {
		t.Errorf("glossary is %+v, %v", g, err)
	}
}

func TestSplitName(t *testing.T) {
	for name, want := range map[string][]string{
		"Land": {"land"}, "ErrLostUpdate": {"err", "lost", "update"}, "RDMARead": {"rdma", "read"}, "NIC": {"nic"}, "P99": {"p99"},
	} {
		if got := splitName(name); !slices.Equal(got, want) {
			t.Errorf("%s is %q", name, got)
		}
	}
}
