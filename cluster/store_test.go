package cluster

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

func placed(t testing.TB) *Configuration {
	c, _, err := instance(3, 2, false).Place(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Root = region.MakePtr(region.MakeAddr(1, 640), 3, 4)
	return c
}

func TestMemoryStoreCopy(t *testing.T) {
	var a, b MemoryStore
	if err := a.CompareAndSwap(0, placed(t)); err != nil {
		t.Fatal(err)
	}
	a.CopyTo(&b)
	if err := b.CompareAndSwap(2, placed(t)); err != nil {
		t.Error(err)
	}
}

// encoded returns a stored configuration after a change to its JSON.
func encoded(t testing.TB, change func(outer, inner map[string]any)) []byte {
	b := placed(t).Encode()
	outer := map[string]any{}
	if err := json.Unmarshal(b, &outer); err != nil {
		t.Fatal(err)
	}
	change(outer, outer["Configuration"].(map[string]any))
	b, err := json.Marshal(outer)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBadConfigurations(t *testing.T) {
	placement := func(inner map[string]any) map[string]any { return inner["Regions"].([]any)[0].(map[string]any) }
	for name, change := range map[string]func(outer, inner map[string]any){
		"newer format":         func(o, _ map[string]any) { o["Format"] = formatVersion + 1 },
		"no format":            func(o, _ map[string]any) { delete(o, "Format") },
		"nothing":              func(o, _ map[string]any) { delete(o, "Configuration") },
		"no id":                func(_, i map[string]any) { i["ID"] = 0 },
		"no machines":          func(_, i map[string]any) { i["Machines"], i["FailureDomain"] = []int{}, []int{} },
		"machines not sorted":  func(_, i map[string]any) { i["Machines"] = []int{1, 0, 2} },
		"a machine twice":      func(_, i map[string]any) { i["Machines"] = []int{0, 1, 1} },
		"domains missing":      func(_, i map[string]any) { i["FailureDomain"] = []int{0} },
		"no revision":          func(_, i map[string]any) { i["Revision"] = 0 },
		"another program":      func(o, _ map[string]any) { o["Program"] = "other" },
		"incarnations missing": func(_, i map[string]any) { i["Incarnation"] = []int{1} },
		"capacities missing":   func(_, i map[string]any) { i["Capacity"] = []int{1} },
		"addresses missing":    func(_, i map[string]any) { i["Address"] = []string{} },
		"zones missing":        func(_, i map[string]any) { i["Zone"] = []string{"a"} },
		"protocol missing":     func(o, i map[string]any) { o["Format"] = 4; delete(i, "Protocol") },
		"no range":             func(_, i map[string]any) { i["Protocol"].([]any)[0] = map[string]int{"Min": 2, "Max": 1} },
		"not spoken by all":    func(_, i map[string]any) { i["Speaks"] = 2 },
		"CM is no member":      func(_, i map[string]any) { i["CM"] = 9 },
		"fills no backup":      func(_, i map[string]any) { placement(i)["Filling"] = []int{1} },
		"keeps, fills not":     func(_, i map[string]any) { placement(i)["Kept"] = []int{0} },
		"change to come":       func(_, i map[string]any) { placement(i)["LastReplicaChange"] = 8 },
		"no replicas":          func(_, i map[string]any) { i["Replicas"] = 0 },
		"unknown primary":      func(_, i map[string]any) { placement(i)["Primary"] = 7 },
		"unknown backup":       func(_, i map[string]any) { placement(i)["Backups"] = []int{7} },
		"backup is primary":    func(_, i map[string]any) { placement(i)["Backups"] = []int{1} },
		"too many backups":     func(_, i map[string]any) { placement(i)["Backups"] = []int{0, 2} },
		"a region to come":     func(_, i map[string]any) { i["NextRegion"] = 1 },
		"region of no name":    func(_, i map[string]any) { placement(i)["Region"] = 0 },
		"root without a place": func(o, _ map[string]any) { o["Root"] = []byte{1, 2, 3} },
		"newer format of another shape": func(o, _ map[string]any) {
			o["Format"], o["Configuration"] = formatVersion+1, map[string]any{"Speaks": 300, "Protocol": []string{"1-3"}}
		},
		"a string": func(o, _ map[string]any) { o["Configuration"] = "x" },
	} {
		path := filepath.Join(t.TempDir(), "c.json")
		if err := os.WriteFile(path, encoded(t, change), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := NewFileStore(path).Load()
		if c != nil || !errors.Is(err, ErrBadConfiguration) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
		if strings.HasPrefix(name, "newer format") && !strings.Contains(err.Error(), "newer farmsql") {
			t.Errorf("%s: %v", name, err)
		}
		if err := NewFileStore(path).CompareAndSwap(2, placed(t)); !errors.Is(err, ErrBadConfiguration) {
			t.Errorf("%s: overwritten: %v", name, err)
		}
	}
}

func TestFileStoreWithoutFolder(t *testing.T) {
	s := NewFileStore(filepath.Join(t.TempDir(), "gone", "c.json"))
	if err := s.CompareAndSwap(0, placed(t)); err == nil {
		t.Error("written into a folder that is not there")
	}
	dir := t.TempDir()
	if _, err := NewFileStore(dir).Load(); err == nil {
		t.Error("a folder was read")
	}
}

// A crash while the file is replaced leaves the old file. A half-written new file does no harm.
func TestLeftOverNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	s := NewFileStore(path)
	c := placed(t)
	if err := s.CompareAndSwap(0, c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte("{half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("loaded %v, %v", got, err)
	}
	if err := s.CompareAndSwap(c.Revision, c.Revise()); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, func(_, _ map[string]any) {}))
	f.Add(format3(f))
	for _, r := range []protocol.Range{protocol.Own, {Min: 1, Max: 9}, {Min: 3, Max: 2}, {Max: 255}} {
		f.Add(format4(f, r))
	}
	f.Add([]byte("{}"))
	f.Add([]byte(`{"Format":1,"Configuration":{"ID":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode("x", b)
		if err != nil {
			if !errors.Is(err, ErrBadConfiguration) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		for _, m := range c.Machines { // usable: nothing panics
			if next, _, err := c.Place(m, 0); err == nil {
				next.Clone()
			}
		}
	})
}

// This program reads files of its first version.
func TestFormat1(t *testing.T) {
	c, err := Decode("x", []byte(`{"Format": 1, "Configuration": {"ID": 9, "Machines": [0, 1], "FailureDomain": [0, 1], "CM": 0,
		"Replicas": 2, "NextRegion": 2, "Regions": [{"Region": 1, "Primary": 1, "Backups": [0]}]}, "Root": "AAAAAAAAAAAAAAAAAAAAAA=="}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := c.Member(1); !ok || !reflect.DeepEqual(m, Member{Machine: 1, FailureDomain: 1}) || c.Revision != 9 || c.Regions[0].Group != 1 {
		t.Errorf("%+v", c)
	}
}

// It also reads files of versions that knew no tokens of memories.
func TestFormat2(t *testing.T) {
	c, err := Decode("x", []byte(`{"Program": "farmsql", "Format": 2, "Configuration": {"Cluster": 7, "ID": 9, "Revision": 12, "Machines": [0, 1], "FailureDomain": [0, 1],
		"Incarnation": [5, 6], "Capacity": [0, 0], "CM": 0, "Replicas": 2, "NextRegion": 2, "Regions": [{"Region": 1, "Primary": 1, "Backups": [0], "Group": 1}]},
		"Root": "AAAAAAAAAAAAAAAAAAAAAA=="}`))
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := c.Member(1); !reflect.DeepEqual(m, Member{Machine: 1, FailureDomain: 1, Incarnation: 6}) || !c.Regions[0].IsAvailable() {
		t.Errorf("%+v", c)
	}
	// Its machines come back with tokens, together or one later.
	d, report := c.Restarted([]Member{{Machine: 0, FailureDomain: 0, Incarnation: 15, Memory: 70}, {Machine: 1, FailureDomain: 1, Incarnation: 16, Memory: 71}}, Member{Machine: 0})
	if m, _ := d.Member(1); report.String() != "" || m.Memory != 71 {
		t.Errorf("%v, %+v", report, d)
	}
	if d, report = c.Without([]rdma.MachineID{1}, 0); report.String() != "promoted [1], short of replicas [1]" {
		t.Errorf("%v", report)
	}
	d.Regions[0].Primary, d.Regions[0].Backups, d.Regions[0].Away = 1, []rdma.MachineID{}, []Memory{{Machine: 1}}
	d, report = d.With(Member{Machine: 1, FailureDomain: 1, Incarnation: 16, Memory: 71}, []region.ID{1})
	if report.String() != "refilled [1], returned [1]" || !d.Regions[0].IsPrimary(1) {
		t.Errorf("%v, %+v", report, d.Regions)
	}
}

// While the file is replaced again and again, Load returns one whole configuration and not parts of
// two. Each replacement writes to the file that the last one replaced.
func TestFileStoreIsReadWhole(t *testing.T) {
	s := NewFileStore(filepath.Join(t.TempDir(), "c.json"))
	c := placed(t)
	for len(c.Regions) < 500 { // long enough to be replaced while it is read
		c.Regions = append(c.Regions, c.Regions[0])
		c.Regions[len(c.Regions)-1].Region = c.NextRegion
		c.NextRegion++
	}
	var over atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !over.Load() {
				got, err := s.Load()
				if err != nil {
					t.Errorf("read while it is replaced: %v", err)
					return
				}
				if got != nil && int(got.NextRegion)-len(got.Regions) != int(c.NextRegion)-len(c.Regions) {
					t.Errorf("%d regions, the next is %d", len(got.Regions), got.NextRegion)
				}
			}
		})
	}
	for i := range 200 {
		next := c.Clone()
		next.Revision = c.Revision + uint64(i)
		if cut := i % 7 * 60; cut > 0 { // of different lengths
			next.Regions, next.NextRegion = next.Regions[:len(next.Regions)-cut], next.NextRegion-region.ID(cut)
		}
		b, err := json.MarshalIndent(json.RawMessage(next.Encode()), "", "\t")
		if err == nil {
			err = nvram.ReplaceFile(s.path, ".new", b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	readers.Wait()
}
