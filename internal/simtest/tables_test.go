package simtest

import "testing"

// Clients define tables and build indexes during faults, both single and overlapping ones.
func TestTables(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func(uint64) Options
	}{
		{"one by one", Draw},
		{"overlapping", func(seed uint64) Options { return Draw(seed).Overlapping() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			total := runSeeds(t, 5101, 6, func(seed uint64) Options {
				o := c.draw(seed)
				o.Tables = 3
				return o
			})
			if total.Tables == 0 || total.Indexes == 0 {
				t.Errorf("%d tables were defined, %d indexes built", total.Tables, total.Indexes)
			}
		})
	}
}
