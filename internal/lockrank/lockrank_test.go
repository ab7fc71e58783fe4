package lockrank

import (
	"slices"
	"testing"
)

// Each rank of the table is in order once: a rank that is not would come before all.
func TestOrder(t *testing.T) {
	for i, r := range order {
		if slices.Index(order, r) != i {
			t.Errorf("%T is in order twice", r)
		}
	}
}
