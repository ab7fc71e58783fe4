package enginetest

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	gmstest "github.com/dolthub/go-mysql-server/enginetest"
	"github.com/dolthub/go-mysql-server/enginetest/queries"
	"github.com/dolthub/go-mysql-server/enginetest/scriptgen/setup"
	"github.com/dolthub/go-mysql-server/sql/variables"
)

// TestSuite runs go-mysql-server's own suite, which is MySQL's behaviour as its
// authors have collected it, over FaRM. Each test gets fresh instances, and
// each instance ends with a walk over everything in it (Engine.Check).
//
// What is left out is in skips, with the reason, and shown as tests that are skipped, with
// what the suite leaves out itself. FARMSQL_NIGHTLY=1 runs the
// tests that take longer or repeat others with prepared statements too; one
// test alone runs with -run 'TestSuite/^Scripts$'. FARMSQL_SKIPPED=1 leaves no
// query or script out (tests that are left out as a whole stay so), to see which
// still fail.
func TestSuite(t *testing.T) { runSuite(t, false) }

// TestSuiteOwnCollation is TestSuite in the collation that a server of ours has unless told
// otherwise, MySQL 8's.
func TestSuiteOwnCollation(t *testing.T) { runSuite(t, true) }

func runSuite(t *testing.T, ownCollation bool) {
	if raceBuild {
		t.Skip("not under the race detector")
	}
	if runsInChild(t) {
		return
	}
	nightly := os.Getenv("FARMSQL_NIGHTLY") != ""
	for _, tt := range suite {
		t.Run(tt.name, func(t *testing.T) {
			why, ok := skippedTests[tt.name]
			if of, only := collationSkippedTests[tt.name]; only && ownCollation {
				why, ok = of, true
			}
			if ok {
				t.Skip(why)
			}
			if tt.nightly && !nightly {
				t.Skip(byNight)
			}
			variables.InitSystemVariables() // tests leave global ones as they like
			h := newHarness(t, tt.name, ownCollation)
			defer h.end(t)
			tt.run(t, h)
			if !t.Failed() {
				h.reportStale(t)
			}
			h.say()
		})
	}
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A suiteTest is one of the suite's tests.
type suiteTest struct {
	name string
	run  func(*testing.T, *harness)
	// nightly tests are left out of an ordinary run.
	nightly bool
}

// of adapts a test of the suite.
func of(test func(*testing.T, gmstest.Harness)) func(*testing.T, *harness) {
	return func(t *testing.T, h *harness) { test(t, h) }
}

// inItsFolder runs a test that reads files where its source is.
func inItsFolder(test func(*testing.T, gmstest.Harness)) func(*testing.T, *harness) {
	return func(t *testing.T, h *harness) {
		file, _ := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).FileLine(0)
		if !filepath.IsAbs(file) {
			t.Skip("the files of go-mysql-server's tests are not known in a build with -trimpath")
		}
		t.Chdir(filepath.Dir(file))
		test(t, h)
	}
}

// transactionScripts asks for each script by its name, which the suite does not.
func transactionScripts(t *testing.T, h *harness) {
	for _, script := range queries.TransactionTests {
		if !h.SkipQueryTest(script.Name) {
			gmstest.TestTransactionScript(t, h, script)
		}
	}
}

// queryErrors runs the queries that must fail. The suite's own function returns
// before the first one unless the provider has table functions.
func queryErrors(t *testing.T, h *harness) {
	h.Setup(setup.MydbData, setup.MytableData, setup.Pk_tablesData, setup.MyhistorytableData, setup.OthertableData, setup.SpecialtableData, setup.DatetimetableData, setup.NiltableData, setup.FooData)
	e, err := h.NewEngine(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range queries.ErrorQueries {
		t.Run(tt.Query, func(t *testing.T) {
			switch {
			case h.SkipQueryTest(tt.Query):
				t.Skip()
			case tt.ExpectedErrStr == "":
				gmstest.AssertErr(t, e, h, tt.Query, nil, tt.ExpectedErr)
			default:
				gmstest.AssertErr(t, e, h, tt.Query, nil, tt.ExpectedErr, tt.ExpectedErrStr)
			}
		})
	}
}
