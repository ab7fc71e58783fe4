package wire

import (
	"testing"
	"time"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// A SELECT's hint MAX_EXECUTION_TIME bounds it; a comment does not, and no other statement has one.
func TestHintedTime(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"SELECT /*+ MAX_EXECUTION_TIME(1500) */ 1": 1500 * time.Millisecond, "SELECT /*+ NO_ICP(t) max_execution_time ( 7 ) */ 1": 7 * time.Millisecond, "SELECT /* MAX_EXECUTION_TIME(1500) */ 1": 0,
		"SELECT /*+ MAX_EXECUTION_TIME(0) */ 1": 0, "SELECT /*+ MAX_EXECUTION_TIME(99999999999) */ 1": 4294967295 * time.Millisecond, "UPDATE /*+ MAX_EXECUTION_TIME(5) */ t SET a = 1": 0, "SELECT 1": 0,
	} {
		ast, err := sqlparser.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := hintedTime(ast); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}
