package lockrank

import (
	"slices"
	"testing"
)

// Each rank of the table is in order exactly once: a rank that is not in order would come before
// all others.
func TestOrder(t *testing.T) {
	for i, r := range order {
		if slices.Index(order, r) != i {
			t.Errorf("%T is in order twice", r)
		}
	}
}
