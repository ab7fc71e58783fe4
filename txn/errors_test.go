package txn

import "testing"

func TestNamesOfReasons(t *testing.T) {
	for r := range reasons {
		if r.String() == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
}
