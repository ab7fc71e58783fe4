package cluster

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
)

func speaks(from, to protocol.Version) protocol.Range { return protocol.Range{Min: from, Max: to} }

// speakers are machines 0, 1, ... that speak these ranges.
func speakers(ranges ...protocol.Range) (some []Member) {
	for i, r := range ranges {
		some = append(some, Member{Machine: rdma.MachineID(i), Protocol: r})
	}
	return some
}

func machinesIn(some []Member) (machines []rdma.MachineID) {
	for _, m := range some {
		machines = append(machines, m.Machine)
	}
	return machines
}

func TestUnderstand(t *testing.T) {
	for _, x := range []struct {
		name   string
		speaks protocol.Version // of the instance
		ranges []protocol.Range
		finds  map[rdma.MachineID][]rdma.MachineID
	}{
		{"all", 1, []protocol.Range{speaks(1, 2), {}, speaks(1, 3)}, map[rdma.MachineID][]rdma.MachineID{0: {0, 1, 2}, 1: {0, 1, 2}, 2: {0, 1, 2}}},
		{"none speaks the instance's", 1, []protocol.Range{speaks(2, 2), speaks(3, 3), speaks(2, 3)}, map[rdma.MachineID][]rdma.MachineID{0: {0, 2}, 1: {1, 2}, 2: {0, 2}}},
		{"most do not speak the instance's", 1, []protocol.Range{speaks(1, 1), speaks(2, 3), speaks(2, 3), speaks(1, 3)}, map[rdma.MachineID][]rdma.MachineID{0: {0, 3}, 1: {1, 2, 3}, 2: {1, 2, 3}, 3: {1, 2, 3}}},
		{"an old program", 2, []protocol.Range{{}, speaks(1, 2), speaks(1, 2)}, map[rdma.MachineID][]rdma.MachineID{0: nil, 1: {1, 2}, 2: {1, 2}}},
		{"no range", 1, []protocol.Range{speaks(0, 2), speaks(3, 1), speaks(1, 2)}, map[rdma.MachineID][]rdma.MachineID{2: {2}}},
		{"the highest version", 255, []protocol.Range{speaks(255, 255), speaks(1, 255)}, map[rdma.MachineID][]rdma.MachineID{0: {0, 1}, 1: {0, 1}}},
	} {
		c, some := &Configuration{Speaks: x.speaks}, speakers(x.ranges...)
		for m, want := range x.finds {
			if got := machinesIn(c.Understand(m, some)); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: machine %d goes on with %v, want %v", x.name, m, got, want)
			}
		}
	}
	err := (&Configuration{ID: 9, Machines: make([]rdma.MachineID, 4)}).NotUnderstood(speakers(speaks(2, 2), protocol.Range{}, speaks(0, 5)))
	if text := "machine 0 speaks version 2, machine 1 speaks version 1, machine 2 speaks versions 0 to 5: more than half of the 4 machines of configuration 9 must speak one version, 1 or higher"; !errors.Is(err, protocol.ErrRange) || !strings.Contains(err.Error(), text) {
		t.Error(err)
	}
}

// The machines of the largest set all find it, though each hears only from those with which it shares
// a version, and the set agrees on a version that is no lower than the instance's.
func TestUnderstandTheSame(t *testing.T) {
	var ranges []protocol.Range
	for low := protocol.Version(1); low <= 3; low++ {
		for high := low; high <= 3; high++ {
			ranges = append(ranges, protocol.Range{Min: low, Max: high})
		}
	}
	for speaks := protocol.Version(1); speaks <= 2; speaks++ {
		for n := range 6 * 6 * 6 * 6 {
			all := speakers(ranges[n%6], ranges[n/6%6], ranges[n/36%6], ranges[n/216])
			c := &Configuration{ID: 1, Speaks: speaks}
			size, finders := 0, map[string]int{} // of each set
			for _, m := range all {
				set := c.Understand(m.Machine, heardBy(m, all))
				if len(set) == 0 {
					continue
				}
				size = max(size, len(set))
				finders[fmt.Sprint(len(set), machinesIn(set))]++
				next := &Configuration{ID: 2, Speaks: speaks}
				for _, x := range set {
					next.AddMember(x)
				}
				if err := next.Agree(); err != nil {
					t.Fatalf("version %d, %v: machine %d goes on with %v: %v", speaks, all, m.Machine, set, err)
				}
			}
			isFound := size == 0
			for set, n := range finders {
				isFound = isFound || n == size && strings.HasPrefix(set, fmt.Sprint(size))
			}
			if !isFound {
				t.Fatalf("version %d, %v: no largest set is found by all of it: %v", speaks, all, finders)
			}
		}
	}
}

// heardBy returns the machines from which m hears.
func heardBy(m Member, all []Member) (some []Member) {
	for _, x := range all {
		if m.Protocol.Overlaps(x.Protocol) {
			some = append(some, x)
		}
	}
	return some
}
