package lease

import (
	"slices"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// Only the machines of a configuration learn that one of them has ended. If all of them end, none
// learns it.
func TestTogether(t *testing.T) {
	var g Together
	var heard []rdma.MachineID // who has heard of the end of machine 1
	join := func(id rdma.MachineID) Keeper {
		return g.Join(call.Peer{Machine: id, Incarnation: 7}, func(x rdma.MachineID) {
			if x != 1 {
				t.Errorf("machine %d hears of machine %d", id, x)
			}
			heard = append(heard, id)
		})
	}
	keepers := []Keeper{join(0), join(1), join(2), join(3)}
	members := []call.Peer{{Machine: 0, Incarnation: 7}, {Machine: 1, Incarnation: 7}, {Machine: 2, Incarnation: 7}}
	for _, k := range keepers[:3] {
		k.Configure(0, members)
		if !k.Valid() || k.Outstanding() != 0 || k.Length() != TogetherLength || k.Variant() == "" {
			t.Errorf("%v, %v, %v, %q", k.Valid(), k.Outstanding(), k.Length(), k.Variant())
		}
	}
	keepers[3].Configure(0, []call.Peer{{Machine: 1, Incarnation: 8}, {Machine: 3, Incarnation: 7}}) // another life
	for range 2 {
		if err := keepers[1].Close(); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Sort(heard); !slices.Equal(heard, []rdma.MachineID{0, 2}) {
		t.Errorf("heard by %v", heard)
	}
	g.End()
	for _, k := range keepers {
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
