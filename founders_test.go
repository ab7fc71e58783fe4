package farmsql

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/raftstore"
	"github.com/farmsql/farmsql/rdma"
)

// TestSuccessor: the place of a founder that is gone goes to a member that was none before, preferably one of a
// failure domain without a founder.
func TestSuccessor(t *testing.T) {
	founders := raftstore.Founders{
		Machines: map[rdma.MachineID]string{0: "a:1", 1: "b:1", 2: "c:1"}, Gone: []rdma.MachineID{0}, Removed: []rdma.MachineID{3},
	}
	for name, c := range map[string]struct {
		domains map[rdma.MachineID]int // of the members
		want    rdma.MachineID         // 0 if there is none
	}{
		"nobody":                     {map[rdma.MachineID]int{1: 1, 2: 2}, 0},
		"removed before":             {map[rdma.MachineID]int{1: 1, 2: 2, 3: 3}, 0},
		"one":                        {map[rdma.MachineID]int{1: 1, 2: 2, 4: 2}, 4},
		"the lowest":                 {map[rdma.MachineID]int{1: 1, 2: 2, 5: 5, 6: 6}, 5},
		"the other failure domain":   {map[rdma.MachineID]int{1: 1, 2: 2, 5: 2, 6: 1, 7: 3}, 7},
		"the domain of who was gone": {map[rdma.MachineID]int{0: 9, 1: 1, 2: 2, 5: 2, 6: 9}, 6},
	} {
		configuration := new(cluster.Configuration)
		for m, d := range c.domains {
			configuration.AddMember(cluster.Member{Machine: m, FailureDomain: d, Address: tcpAddress("x:1")})
		}
		got, ok := successor(configuration, founders)
		if ok != (c.want != 0) || ok && got != (raftstore.Successor{Machine: c.want, Address: "x:1", For: 0}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}
