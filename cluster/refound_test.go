package cluster

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

// An instance that goes on after its configuration store was lost counts only the machines that are left, and waits for
// the memory of the others as after any failure. Its numbers are above all that the others may have reached.
func TestRefounded(t *testing.T) {
	c, p, err := instance(4, 2, false).Place(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Memory {
		c.Memory[i] = 50 + uint64(i)
	}
	backup := p.Backups[0]
	d, report, err := c.Refounded([]rdma.MachineID{backup}, 0, 7_003_000_001)
	before := []Memory{{backup, 50 + uint64(backup), 100 + uint64(backup)}} // the memory that has all of it, and is away
	if p, _ := d.Placement(1); err != nil || !p.IsAvailable() || len(p.Backups) != 1 || !reflect.DeepEqual(p.Before, before) || d.CM != 0 || len(d.Machines) != 3 {
		t.Errorf("%v, %v, %+v", err, report, d)
	}
	if d.ID != c.ID+idsPerRefounding+3_000_001 || d.Revision != c.Revision+2*revisionsPerRefounding || d.NextRegion != c.NextRegion+regionsPerRefounding || !slices.Equal(d.Line, Line{7_003_000_001}) {
		t.Errorf("%+v", d)
	}
	if d.Omits(0) || d.Omits(c.ID) || !d.Omits(c.ID+1) || !d.Omits(d.ID-1) || d.Omits(d.ID) {
		t.Errorf("gaps %+v", d.Gaps)
	}
	if e, _, _ := d.Refounded(nil, 0, 5); e.Omits(d.ID) || !e.Omits(d.ID+1) || !e.Omits(c.ID+1) || len(d.Gaps) != 1 {
		t.Errorf("refounded again: gaps %+v", e.Gaps)
	}
	if err := sound(d); err != nil {
		t.Error(err)
	}
	d, report, err = c.Refounded([]rdma.MachineID{0, backup, 9}, 0, 1) // the CM is not left
	if err != nil || report.String() != "UNAVAILABLE [1]" || !slices.Contains(d.Machines, d.CM) {
		t.Errorf("%v, %v, %+v", err, report, d)
	}
	want := []Memory{{0, 50, 100}, {backup, 50 + uint64(backup), 100 + uint64(backup)}}
	if p, _ := d.Placement(1); !reflect.DeepEqual(p.Away, want) {
		t.Errorf("%+v, want it to wait for %v", p, want)
	}
	if err := sound(d); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Refounded(c.Machines, 0, 1); !errors.Is(err, ErrNobodyLeft) {
		t.Error(err)
	}
}
