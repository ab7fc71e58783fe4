package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// format3 is testdata/format-3.json, which commit af0a729 has written: machines of several lives,
// a region that waits for memories, and one that is being filled.
func format3(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/format-3.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// checkFormat3 reports how c differs from the configuration in format3.
func checkFormat3(t *testing.T, c *Configuration) {
	t.Helper()
	want := &Configuration{
		Cluster: 7, ID: 3, Revision: 8, CM: 2, Replicas: 2, NextRegion: 6, Workers: 2, RegionBytes: 1 << 20, LogBytes: 1 << 16,
		Root: region.MakePtr(region.MakeAddr(1, 640), 3, 4),
		Regions: []Placement{
			{Region: 1, Primary: 0, Backups: []rdma.MachineID{}, Group: 1, Away: []Memory{{0, 200, 100}, {1, 201, 101}}, LastPrimaryChange: 1, LastReplicaChange: 2},
			{Region: 2, Primary: 2, Backups: []rdma.MachineID{9}, Filling: []rdma.MachineID{9}, Kept: []rdma.MachineID{9}, Group: 2,
				Before: []Memory{{1, 201, 101}}, LastPrimaryChange: 2, LastReplicaChange: 3},
			{Region: 3, Primary: 2, Backups: []rdma.MachineID{3}, Group: 3, LastPrimaryChange: 1, LastReplicaChange: 1},
			{Region: 4, Primary: 3, Backups: []rdma.MachineID{4}, Group: 4, LastPrimaryChange: 1, LastReplicaChange: 1},
			{Region: 5, Primary: 4, Backups: []rdma.MachineID{2}, Filling: []rdma.MachineID{2}, Group: 5, Before: []Memory{{0, 200, 100}}, LastPrimaryChange: 1, LastReplicaChange: 2},
		},
	}
	for i, id := range []rdma.MachineID{2, 3, 4, 9} {
		want.AddMember(Member{Machine: id, FailureDomain: int(id) + 1, Incarnation: 100 + uint64(id), Memory: 200 + uint64(id), Capacity: 10 * int(id)})
		if i == 3 {
			want.FailureDomain[i], want.Capacity[i] = 9, 0
		}
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("loaded %+v, want %+v", c, want)
	}
}

// This program reads a file that the version before has stored. While programs of that version are
// members, this program stores the same bytes as they would.
func TestFormat3(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.json")
	if err := os.WriteFile(path, format3(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewFileStore(path)
	c, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	checkFormat3(t, c)
	next := c.Revise()
	next.Describe(Member{Machine: 3, Incarnation: 103, Address: "here", Zone: "a/b", Protocol: protocol.Own})
	if err := errors.Join(next.Agree(), s.CompareAndSwap(c.Revision, next)); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Load(); err != nil || !reflect.DeepEqual(again, next) {
		t.Errorf("%+v, %v", again, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	then, now := map[string]any{}, map[string]any{}
	if err := errors.Join(json.Unmarshal(format3(t), &then), json.Unmarshal(b, &now)); err != nil {
		t.Fatal(err)
	}
	inner := now["Configuration"].(map[string]any)
	for _, name := range []string{"Address", "Zone", "Protocol", "Speaks"} {
		delete(inner, name) // the version before passes over it
	}
	then["Configuration"].(map[string]any)["Revision"] = 9.0
	if !reflect.DeepEqual(then, now) {
		t.Errorf("stored %v, want %v", now, then)
	}
}

// format4 returns a configuration of format 4. All of its members state the range r, which may be
// invalid.
func format4(t testing.TB, r protocol.Range) []byte {
	c, err := Decode("x", format3(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Machines {
		c.Address[i], c.Zone[i], c.Protocol[i] = "host:1", "zone", r
	}
	c.Speaks = max(protocol.Ranges, r.Max)
	b := c.Encode()
	if !bytes.Contains(b, fmt.Appendf(nil, `"Format":%d`, c.format())) {
		t.Fatalf("%s", b)
	}
	return b
}

// Once all members speak version 2, the configuration has format 4. Programs of the version before
// refuse it, because they would drop fields that they do not know.
func TestFormat4(t *testing.T) {
	c, err := Decode("x", format3(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range c.Machines {
		if !bytes.Contains(c.Encode(), []byte(`"Format":3`)) {
			t.Errorf("%s", c.Encode())
		}
		m, _ := c.Member(id)
		m.Address, m.Zone, m.Protocol = "host:1", "zone", protocol.Range{Min: 1, Max: 2}
		c.Describe(m)
		if err := c.Agree(); err != nil {
			t.Fatal(err)
		}
	}
	b := c.Encode()
	if !bytes.Contains(b, []byte(`"Format":4`)) || c.Version() != protocol.Ranges {
		t.Errorf("version %d: %s", c.Version(), b)
	}
	if d, err := Decode("x", b); err != nil || !reflect.DeepEqual(c, d) {
		t.Errorf("%+v, %v", d, err)
	}
	// The configuration does not return to format 3.
	old, _ := c.Member(9)
	old.Protocol = protocol.Range{}
	if c.Describe(old); c.Agree() == nil {
		t.Error("an instance speaks a lower version than before")
	}
}

// All members use the highest version that all know. Two members use the highest version that both
// know.
func TestAgree(t *testing.T) {
	none := protocol.Range{}
	r := func(from, to protocol.Version) protocol.Range { return protocol.Range{Min: from, Max: to} }
	for _, x := range []struct {
		name   string
		speak  []protocol.Range
		before protocol.Version
		want   protocol.Version
		pair   protocol.Version // of the first two
		err    string
	}{
		{"nobody says", []protocol.Range{none, none}, 0, 1, 1, ""},
		{"one says", []protocol.Range{none, r(1, 2)}, 0, 1, 1, ""},
		{"all say", []protocol.Range{r(1, 2), r(1, 2)}, 1, 2, 2, ""},
		{"the next one among these", []protocol.Range{r(1, 3), r(1, 3), r(1, 2)}, 2, 2, 3, ""},
		{"all are next ones", []protocol.Range{r(1, 3), r(2, 3), r(3, 3)}, 2, 3, 3, ""},
		{"too far apart", []protocol.Range{r(1, 2), r(3, 4)}, 1, 0, 0, "machine 0 speaks versions 1 to 2, machine 1 speaks versions 3 to 4: start machine 0 with a newer farmsql, which speaks version 3"},
		{"no range", []protocol.Range{r(1, 2), r(0, 2)}, 1, 0, 2, "machine 1 says that it speaks versions 0 to 2, which is no range: start machine 1 with another farmsql"},
		{"no range either", []protocol.Range{r(1, 2), r(3, 2)}, 1, 0, 0, "machine 1 says that it speaks versions 3 to 2, which is no range"},
		{"older than what is spoken", []protocol.Range{r(1, 2), r(1, 1)}, 2, 0, 1, "machine 1 speaks version 1, the instance speaks version 2"},
	} {
		c := instance(0, 1, false)
		for i, speaks := range x.speak {
			c.AddMember(Member{Machine: rdma.MachineID(i), Protocol: speaks})
		}
		c.Speaks = x.before
		err := c.Agree()
		if x.err == "" && (err != nil || c.Version() != x.want) || x.err != "" && (!errors.Is(err, protocol.ErrRange) || !strings.Contains(err.Error(), x.err)) {
			t.Errorf("%s: %d, %v", x.name, c.Version(), err)
		}
		if v, err := c.Between(0, 1); v != x.pair || (err != nil) != (v == 0) {
			t.Errorf("%s: two speak %d, %v", x.name, v, err)
		}
		// A machine without a common version with the others is not admitted.
		last := rdma.MachineID(len(x.speak) - 1)
		m, _ := c.Member(last)
		c.removeMember(last)
		if err := c.Admits(m); (err != nil) != (x.err != "") || err != nil && (!errors.Is(err, protocol.ErrRange) || !strings.Contains(err.Error(), "machine 0 speaks") && !strings.Contains(err.Error(), x.err)) {
			t.Errorf("%s: the last is let in: %v", x.name, err)
		}
	}
}

// Describe ignores another life of a member, and machines that are no members.
func TestDescribe(t *testing.T) {
	c := instance(2, 1, false)
	c.Describe(Member{Machine: 1, Incarnation: 9, Address: "x"})
	c.Describe(Member{Machine: 7, Incarnation: 107, Address: "x"})
	if !reflect.DeepEqual(c, instance(2, 1, false)) {
		t.Errorf("%+v", c)
	}
	was, _ := c.Member(1)
	was.Address, was.Zone, was.Protocol = "x", "y", protocol.Own
	c.Describe(was)
	if m, _ := c.Member(1); !reflect.DeepEqual(m, was) {
		t.Errorf("%+v", m)
	}
	next, _ := c.Restarted([]Member{{Machine: 1, Incarnation: 111, Address: "z"}}, Member{Machine: 1, Incarnation: 111})
	if m, _ := next.Member(1); m.Address != "z" || m.Protocol != (protocol.Range{}) {
		t.Errorf("another life is described by %+v", m)
	}
}
