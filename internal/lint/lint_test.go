package lint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRepository holds every file of the repository to the rules.
func TestRepository(t *testing.T) {
	root := os.DirFS("../..")
	problems, err := Check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	long, err := LongFunctions(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range long {
		t.Log("long:", p)
	}
}

// Without this the test above might look at nothing.
func TestRepositoryIsFound(t *testing.T) {
	packages, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if files := packages["internal/lint"]; len(files) < 5 {
		t.Errorf("%d files of this package found", len(files))
	}
	for _, dir := range slices.Concat(layers...) {
		if packages[dir] == nil {
			t.Errorf("%s is in the table, and there is no such package", dir)
		}
	}
}

const doc = "// Package p is a package.\n"

func TestRulesCatchViolations(t *testing.T) {
	for name, c := range map[string]struct {
		file, source string
		want         string // what the only problem says; none if empty
	}{
		"layer above":           {"txn/a.go", doc + `package p; import _ "` + module + `/cluster"`, ""},
		"layer below":           {"cluster/a.go", doc + `package p; import _ "` + module + `/txn"`, "layers: cluster imports txn, which is not above it"},
		"same line":             {"index/hash/a.go", doc + `package p; import _ "` + module + `/index/btree"`, "layers: index/hash imports index/btree"},
		"root from below":       {"sql/a.go", doc + `package p; import _ "` + module + `"`, "layers: sql imports ., which"},
		"root imports sql":      {"a.go", doc + `package p; import _ "` + module + `/sql"`, ""},
		"tests look down":       {"cluster/a_test.go", `package p; import _ "` + module + `/txn"`, ""},
		"new package":           {"txn/locks/a.go", doc + "package p", "layers: package txn/locks is not in the table"},
		"imports new package":   {"txn/a.go", doc + `package p; import _ "` + module + `/txn/locks"`, "layers: imports txn/locks, which is not in the table"},
		"module of that prefix": {"sql/a.go", doc + `package p; import _ "` + module + `2/txn"`, ""},

		"core imports a module":  {"txn/a.go", doc + `package p; import _ "golang.org/x/sync/errgroup"`, "modules: core package txn imports golang.org/x/sync/errgroup"},
		"listed exception":       {"nvram/a.go", doc + `package p; import _ "golang.org/x/sys/unix"`, ""},
		"exception of another":   {"region/a.go", doc + `package p; import _ "golang.org/x/sys/unix"`, "modules: core package region"},
		"tests import modules":   {"txn/a_test.go", `package p; import _ "go.uber.org/goleak"`, ""},
		"others import modules":  {"cmd/farmsql/a.go", "// Command p runs.\npackage main; import _ \"github.com/alecthomas/kong\"", ""},
		"gms in sql":             {"sql/a.go", doc + `package p; import _ "github.com/dolthub/go-mysql-server/sql"`, ""},
		"gms in the root":        {"a.go", doc + `package p; import _ "github.com/dolthub/go-mysql-server"`, ""},
		"gms in catalog":         {"catalog/a.go", doc + `package p; import _ "github.com/dolthub/go-mysql-server/sql"`, "modules: catalog imports github.com/dolthub/go-mysql-server/sql"},
		"gms in a test":          {"txn/a_test.go", `package p; import _ "github.com/dolthub/go-mysql-server"`, "modules: txn imports"},
		"vitess in the command":  {"cmd/farmsql/a.go", "// Command p runs.\npackage main; import _ \"github.com/dolthub/vitess/go/mysql\"", "modules: cmd/farmsql imports"},
		"named like gms":         {"bench/a.go", doc + `package p; import _ "github.com/dolthub/vitess-fork"`, ""},
		"unsafe in region":       {"region/a.go", doc + `package p; import _ "unsafe"`, ""},
		"unsafe in a provider":   {"rdma/shm/a.go", doc + `package p; import _ "unsafe"`, ""},
		"unsafe in txn":          {"txn/a.go", doc + `package p; import _ "unsafe"`, "unsafe: txn imports unsafe"},
		"unsafe in a test":       {"txn/a_test.go", `package p; import _ "unsafe"`, "unsafe: txn imports unsafe"},
		"cgo in sql":             {"sql/a.go", doc + `package p; import "C"`, "unsafe: sql imports C"},
		"the time":               {"sql/a.go", doc + `package p; import "time"; var t = time.Now()`, "clock: time.Now"},
		"the time since":         {"sql/a.go", doc + `package p; import "time"; var t = time.Since(time.Time{})`, "clock: time.Since"},
		"time under a name":      {"sql/a.go", doc + `package p; import now "time"; var f = now.Now`, "clock: now.Now"},
		"time by dot":            {"sql/a.go", doc + `package p; import . "time"; var t = Now()`, "clock: imports all names of time"},
		"not the package":        {"sql/a.go", doc + `package p; import "time"; var d time.Duration; func f(time interface{ Now() }) { time.Now() }`, ""},
		"sleep in core":          {"txn/a.go", doc + `package p; import "time"; func f() { time.Sleep(1) }`, "clock: time.Sleep"},
		"sleep elsewhere":        {"sql/wire/a.go", doc + `package p; import "time"; func f() { time.Sleep(1) }`, ""},
		"time in a test":         {"txn/a_test.go", `package p; import "time"; var t = time.Now()`, ""},
		"time in the clock":      {"internal/clock/a.go", doc + `package p; import "time"; var t = time.Now()`, ""},
		"time in a benchmark":    {"bench/tpcc/a.go", doc + `package p; import "time"; var t = time.Now()`, ""},
		"global rand":            {"txn/a.go", doc + `package p; import "math/rand"; var n = rand.Int()`, "clock: rand.Int"},
		"global rand v2":         {"txn/a.go", doc + `package p; import "math/rand/v2"; var n = rand.N(3)`, "clock: rand.N"},
		"seeded rand":            {"txn/a.go", doc + `package p; import "math/rand/v2"; var r *rand.Rand = rand.New(rand.NewPCG(1, 2))`, ""},
		"crypto's rand":          {"sql/a.go", doc + `package p; import "crypto/rand"; var n = rand.Text()`, ""},
		"goroutine":              {"txn/a.go", doc + `package p; func f() { go f() }`, "wait: go statement"},
		"goroutine elsewhere":    {"sql/wire/a.go", doc + `package p; func f() { go f() }`, ""},
		"goroutine in a test":    {"txn/a_test.go", `package p; func f() { go f() }`, ""},
		"goroutine at Close":     {"farm/save.go", doc + `package p; func f() { go f() }`, ""},
		"channel":                {"region/a.go", doc + `package p; var c chan int`, "wait: channel"},
		"send":                   {"region/a.go", doc + `package p; func f() { c <- 1 }`, "wait: sends"},
		"receive":                {"region/a.go", doc + `package p; func f() { <-c }`, "wait: receives"},
		"not a receive":          {"region/a.go", doc + `package p; var x = -1`, ""},
		"select":                 {"farm/a.go", doc + `package p; func f() { select {} }`, "wait: select"},
		"yield":                  {"farm/a.go", doc + `package p; import "runtime"; func f() { runtime.Gosched() }`, "wait: runtime.Gosched"},
		"wait group":             {"farm/a.go", doc + `package p; import "sync"; var g sync.WaitGroup`, "wait: sync.WaitGroup"},
		"timer in a context":     {"farm/a.go", doc + `package p; import "context"; var f = context.WithTimeout`, "wait: context.WithTimeout"},
		"lock across waits":      {"farm/a.go", doc + "package p\nfunc f() { clock.Lock(&x.grow); x.grow.Lock() }", "wait: grow.Lock"},
		"locks across waits":     {"farm/a.go", doc + "package p\nfunc f() { clock.Lock(&x.grow); clock.Lock(&y.grow) }", ""},
		"locks of two kinds":     {"farm/a.go", doc + "package p\nfunc f() { clock.Lock(&x.grow); x.mu.Lock() }", ""},
		"order of a map":         {"farm/a.go", doc + "package p\nvar m map[int]int\nfunc f() { for range m {} }", "order: ranges over m"},
		"order of a field":       {"farm/a.go", doc + "package p\ntype t struct { m map[int]int }\nfunc f(x t) { for range x.m {} }", "order: ranges over m"},
		"order of a local":       {"farm/a.go", doc + "package p\nfunc f() { m := make(map[int]int)\nfor range m {} }", "order: ranges over m"},
		"order of a literal":     {"farm/a.go", doc + "package p\nfunc f() { m := map[int]int{}\nfor range m {} }", "order: ranges over m"},
		"any order":              {"farm/a.go", doc + "package p\nvar m map[int]int\nfunc f() { for range m { // any order: it sums up\n} }", ""},
		"order of a parameter":   {"farm/a.go", doc + "package p\nfunc f(m map[int]int) { for range m {} }", "order: ranges over m"},
		"order of a variable":    {"farm/a.go", doc + "package p\nvar m = map[int]int{}\nfunc f() { for range m {} }", "order: ranges over m"},
		"field of two types":     {"farm/a.go", doc + "package p\ntype t struct { m map[int]int }\ntype u struct { m []int }\nfunc f(x t) { for range x.m {} }", ""},
		"another's field":        {"farm/a.go", doc + "package p\ntype t struct { m map[int]int }\nfunc f(x q.T) { for range x.m { // in order: a slice\n} }", ""},
		"lock without a name":    {"txn/a.go", doc + "package p\nfunc fLocked() {}\nfunc g() { fLocked() }", "locks: fLocked is called by a function that neither"},
		"lock by name":           {"txn/a.go", doc + "package p\nfunc fLocked() {}\nfunc gLocked() { func() { fLocked() }() }", ""},
		"lock taken":             {"txn/a.go", doc + "package p\nfunc fLocked() {}\nfunc g() { x.mu.Lock(); defer x.mu.Unlock(); fLocked() }", ""},
		"lock of a caller":       {"txn/a.go", doc + "package p\nfunc fLocked() {}\nfunc g() { fLocked() // locked: by h\n}", ""},
		"another's name":         {"txn/a.go", doc + "package p\nfunc g() { x.applyLocked() }", ""},
		"names elsewhere":        {"region/a.go", doc + "package p\nfunc fLocked() {}\nfunc g() { fLocked() }", ""},
		"lock kept":              {"txn/a.go", doc + "package p\nfunc g() { x.lock() }", "locks: x.unlock is not called"},
		"lock given away":        {"txn/a.go", doc + "package p\nfunc gLocked() { x.unlock(); x.lock() }", ""},
		"lock of another":        {"txn/a.go", doc + "package p\nfunc gLocked() { x.unlock() }", "locks: x.unlock is called by a function that has not"},
		"lock of one of two":     {"txn/a.go", doc + "package p\nfunc g() { x.mu.Lock(); y.mu.Lock(); defer y.mu.Unlock() }", "locks: x.mu.Unlock is not called"},
		"lock by a clock":        {"txn/a.go", doc + "package p\nfunc g() { m.Clock.Lock(&m.mu); defer m.mu.Unlock() }", ""},
		"lock of who calls":      {"txn/a.go", doc + "package p\nfunc g() { x.lock(); x.unlock(); func() { x.unlock() }() }", "locks: x.unlock is called"},
		"lock of one's own":      {"txn/a.go", doc + "package p\nfunc (x *t) Lock() { x.mu.Lock() }\nfunc (x *t) Unlock() { x.mu.Unlock() }", ""},
		"phase named lock":       {"txn/a.go", doc + "package p\nfunc g() { m.lock(&w) }", ""},
		"order elsewhere":        {"sql/wire/a.go", doc + "package p\nvar m map[int]int\nfunc f() { for range m {} }", ""},
		"order of a slice":       {"farm/a.go", doc + "package p\nvar m []int\nfunc f() { for range m {} }", ""},
		"order of a call":        {"farm/a.go", doc + "package p\nfunc f() { for range f() {} }", ""},
		"mutex without a rank":   {"txn/a.go", doc + `package p; import "sync"; var mu sync.Mutex`, "lockrank: sync.Mutex"},
		"mutex of the server":    {"sql/wire/a.go", doc + `package p; import "sync"; var mu sync.RWMutex`, "lockrank: sync.RWMutex"},
		"mutex of a program":     {"cmd/farmsql-bench/a.go", "// Command p runs.\npackage main; import \"sync\"; var mu sync.Mutex", ""},
		"mutex with a rank":      {"txn/a.go", doc + `package p; import "github.com/farmsql/farmsql/internal/lockrank"; var mu lockrank.Mutex[lockrank.Leaf]`, ""},
		"broken protocol":        {"txn/a.go", doc + `package p; import "github.com/farmsql/farmsql/internal/sabotage"; var _ = sabotage.Skip`, "sabotage: sabotage.Skip"},
		"breakable protocol":     {"txn/a.go", doc + `package p; import "github.com/farmsql/farmsql/internal/sabotage"; var _ = sabotage.Backups.Skipped()`, ""},
		"protocol under test":    {"txn/a_test.go", `package p; import "github.com/farmsql/farmsql/internal/sabotage"; var _ = sabotage.Skip`, ""},
		"no doc":                 {"txn/a.go", "package p", "doc: package txn has no package comment"},
		"doc of another":         {"txn/a.go", "// Package q is.\npackage p", "doc: package txn has"},
		"detached doc":           {"txn/a.go", doc + "\npackage p", "doc: package txn has"},
		"command":                {"cmd/farmsql/a.go", doc + "package main", "doc: package cmd/farmsql"},
		"only tests":             {"txn/a_test.go", "package p", ""},
		"bare open end":          {"txn/a.go", doc + "package p // TODO make it fast", "todo: open end"},
		"open end with a name":   {"txn/a.go", doc + "package p // TODO(@bob): later", "todo: open end"},
		"settled open end":       {"txn/a.go", doc + "package p // TODO(snapshots): read an older version", ""},
		"one of two is settled":  {"txn/a.go", doc + "package p /* TODO(x): y\nTODO z */", "todo: open end"},
		"fixme":                  {"txn/a_test.go", "package p // FIXME(x): y", "todo: open end"},
		"word in a string":       {"txn/a.go", doc + `package p; const s = "TODO"`, ""},
		"function of 100 lines":  {"txn/a.go", doc + "package p\nfunc f() {" + strings.Repeat("\n", 99) + "}", ""},
		"argument by its number": {"txn/a.go", doc + "package p; const f = \"%s, %[1]s\"", "format: format with the number of an argument"},
		"number with flags":      {"txn/a.go", doc + "package p; const f = `%-5[2]d`", "format: format with the number of an argument"},
		"arguments in order":     {"txn/a.go", doc + "package p; const f = \"%s[1] 100%\"", ""},
		"number in a test":       {"txn/a_test.go", "package p; const f = \"%[1]s\"", ""},
		"function of 101 lines":  {"txn/a.go", doc + "package p\nfunc f() {" + strings.Repeat("\n", 100) + "}", "length: function f has 101 lines"},
		"long table in a test":   {"txn/a_test.go", "package p\nfunc f() {" + strings.Repeat("\n", 200) + "}", ""},
		"ignored by go":          {"txn/testdata/a.go", "nonsense", ""},
		"whatever the build tag": {"txn/a_windows.go", "//go:build ignore\n\n" + doc + `package p; import _ "unsafe"`, "unsafe: txn"},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := Check(fstest.MapFS{c.file: {Data: []byte(c.source)}})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.want == "" && len(problems) != 0:
				t.Errorf("reported: %v", problems)
			case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), ": "+c.want)):
				t.Errorf("got %v, want %q", problems, c.want)
			}
		})
	}
}

// Functions of the package below that need its lock are called with the lock held, too.
func TestLocksOfThePackageBelow(t *testing.T) {
	for call, want := range map[string]string{
		"w.FLocked()":                       "locks: FLocked is called by a function that neither",
		"w.Lock(); w.FLocked(); w.Unlock()": "",
	} {
		problems, err := Check(fstest.MapFS{
			"txn/worker/a.go": {Data: []byte("// Package worker is.\npackage worker\n\nfunc FLocked() {}\n")},
			"txn/a.go":        {Data: []byte("// Package txn is.\npackage txn\n\nfunc g() { " + call + " }\n")},
		})
		if err != nil || (want == "") != (len(problems) == 0) || want != "" && !strings.Contains(problems[0].String(), want) {
			t.Errorf("%s: %v, %v", call, problems, err)
		}
	}
}

func TestDocInOneFileIsEnough(t *testing.T) {
	problems, err := Check(fstest.MapFS{
		"txn/a.go": {Data: []byte("package txn")},
		"txn/b.go": {Data: []byte("// Package txn is.\npackage txn")},
	})
	if err != nil || len(problems) != 0 {
		t.Error(problems, err)
	}
}

func TestOrderAndPlace(t *testing.T) {
	problems, err := Check(fstest.MapFS{
		"txn/b.go":    {Data: []byte("package txn\n\nimport _ \"unsafe\"\n")},
		"region/a.go": {Data: []byte("package region")},
	})
	want := "[region/a.go:1: doc: package region has no package comment" +
		" txn/b.go:1: doc: package txn has no package comment" +
		" txn/b.go:3: unsafe: txn imports unsafe; only internal/clock, internal/prefetch, nvram, region, rdma, rdma/..., cluster/lease may]"
	if got := fmt.Sprint(problems); err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestUnparsableFile(t *testing.T) {
	if _, err := Check(fstest.MapFS{"txn/a.go": {Data: []byte("pakcage")}}); err == nil || !strings.Contains(err.Error(), "txn/a.go") {
		t.Errorf("error is %v", err)
	}
}

func TestLongFunctions(t *testing.T) {
	long, err := LongFunctions(fstest.MapFS{"txn/a.go": {Data: []byte("package p\nfunc f() {" + strings.Repeat("\n", 70) + "}\nfunc g() {}")}})
	if err != nil || len(long) != 1 || long[0].Text != "f has 71 lines" {
		t.Error(long, err)
	}
}

// The table must not contradict itself.
func TestTable(t *testing.T) {
	var seen []string
	for _, line := range layers {
		for _, dir := range line {
			if slices.Contains(seen, dir) {
				t.Errorf("%s is in the table twice", dir)
			}
			seen = append(seen, dir)
		}
	}
	for dir := range core {
		if !slices.Contains(seen, dir) {
			t.Errorf("core package %s is not in the table", dir)
		}
	}
	for _, dir := range mysqlUsers {
		if _, isCore := core[dir]; isCore || !slices.Contains(seen, dir) {
			t.Errorf("%s may import go-mysql-server but is core or unknown", dir)
		}
	}
}
