package lockrank

import (
	"reflect"
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
	if n := reflect.TypeFor[rank]().NumMethod(); n != 0 || len(places) != len(order) {
		t.Errorf("%d places of %d ranks", len(places), len(order))
	}
}

func TestBefore(t *testing.T) {
	for _, c := range []struct {
		held, wanted Rank
		may          bool
	}{
		{Connector{}, Leaf{}, true},
		{Worker{}, Machine{}, true},
		{Machine{}, Worker{}, false},
		{Worker{}, Worker{}, false},
		{Leaf{}, Leaf{}, false},
		{Giving{}, Giving{}, true},
	} {
		if before(c.held, c.wanted) != c.may {
			t.Errorf("%T before %T: %v", c.held, c.wanted, !c.may)
		}
	}
}
