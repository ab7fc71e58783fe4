package cluster

import "testing"

// Lines are apart if neither goes on from the other: a machine that has missed a Refounding may follow it.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		a, b Line
		want bool
	}{
		{nil, nil, false},
		{nil, Line{1}, false},
		{Line{1}, Line{1, 2}, false},
		{Line{1, 2}, Line{1, 2}, false},
		{Line{1}, Line{2}, true},
		{Line{1, 2}, Line{1, 3}, true},
		{Line{2}, Line{1, 2}, true},
	} {
		if c.a.IsApart(c.b) != c.want || c.b.IsApart(c.a) != c.want {
			t.Errorf("%v and %v: want %v", c.a, c.b, c.want)
		}
		if leads := c.b.Leads(c.a); leads != (c.want || len(c.b) > len(c.a)) {
			t.Errorf("%v leads away from %v: %v", c.b, c.a, leads)
		}
	}
}
