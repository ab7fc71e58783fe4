package enginetest

import (
	"testing"

	gmstest "github.com/dolthub/go-mysql-server/enginetest"
	_ "github.com/dolthub/go-mysql-server/sql/variables"
)

type suiteTest struct {
	name string
	run  func(*testing.T, gmstest.Harness)
}

func TestSuite(t *testing.T) {
	for _, tt := range suite {
		t.Run(tt.name, func(t *testing.T) {
			h := &harness{skips: skips[tt.name], used: make(map[string]bool)}
			t.Cleanup(func() { h.end(t) })
			tt.run(t, h)
		})
	}
}
