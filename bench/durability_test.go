package bench

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestDurability(t *testing.T) {
	tmpfs, err := os.MkdirTemp(memoryFolder, folderPattern)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmpfs)
	for _, c := range []struct {
		cfg  TargetConfig
		want Durability
	}{
		{TargetConfig{}, Volatile},
		{TargetConfig{Transport: TransportSHM}, Tmpfs},
		{TargetConfig{DataFolder: tmpfs}, Tmpfs},
		{TargetConfig{DataFolder: "/proc"}, DiskFile}, // any file system that is not memory
		{TargetConfig{DataFolder: tmpfs, Saves: "/proc"}, Saved},
		{TargetConfig{DataFolder: tmpfs, Saves: tmpfs}, Tmpfs},
		{TargetConfig{DataFolder: "/proc", Saves: tmpfs}, DiskFile},
		{TargetConfig{DataFolder: "/proc", Saves: "/proc"}, DiskFile},
		{TargetConfig{DataFolder: "/no/such/folder", Saves: "/proc"}, Unknown},
		{TargetConfig{DataFolder: "/no/such/folder"}, Unknown},
		{TargetConfig{DSN: "x"}, OfServer},
	} {
		if got := c.cfg.durability(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
	}
}

// A target in a folder has its memory there, reports that, and leaves nothing.
func TestDataFolder(t *testing.T) {
	for _, saves := range []string{"", t.TempDir()} {
		data := t.TempDir()
		tg, err := Open(t.Context(), TargetConfig{DataFolder: data, Saves: saves, RegionSize: 1 << 20, LogSize: 1 << 16, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(data); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v in the folder, want one", entries, err)
		}
		c := conditions(&tg.cfg, &Options{}, "toy", Scale{1, "thing"}, sampleResult(5000, 1).Conditions.Began)
		if c.Memory != "files in "+data || c.Durability != tg.cfg.durability() || !strings.Contains(c.Describe(), "\ndurability: "+string(c.Durability)+"\n") {
			t.Errorf("%+v\n%s", c, c.Describe())
		}
		if err := tg.Close(); err != nil {
			t.Error(err)
		}
		for _, folder := range []string{data, saves} {
			if entries, _ := os.ReadDir(folder); folder != "" && len(entries) != 0 {
				t.Errorf("%v is left", entries)
			}
		}
	}
	for _, cfg := range []TargetConfig{{DataFolder: "/tmp", Transport: TransportSHM}, {DataFolder: "/tmp", API: SQL, DSN: "x"}, {Saves: "/tmp"}} {
		if err := cfg.validate(); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestSpread(t *testing.T) {
	var runs []*Result
	for _, perSecond := range []float64{3000, 5000, 1000, 4000} {
		runs = append(runs, sampleResult(perSecond, 1))
	}
	one := runs[0].Spread
	if x := runs[0].Total.PerSecond; !reflect.DeepEqual(one, Spread{1, x, x, x, []float64{x}}) || !strings.Contains(one.String(), "1 run,") {
		t.Errorf("of one run: %+v, %s", one, &one)
	}
	res := Median(runs)
	s := res.Spread
	if s.Runs != 4 || len(s.Each) != 4 || s.Median != res.Total.PerSecond || res.Total.PerSecond != runs[0].Total.PerSecond ||
		s.Min != runs[2].Total.PerSecond || s.Max != runs[1].Total.PerSecond || runs[0].Spread.Runs != 1 {
		t.Errorf("%+v", s)
	}
	res.Conditions.Scale, res.ResidentBytes = Scale{2, "things"}, 12_300_000
	var b strings.Builder
	if err := res.Print(&b); err != nil {
		t.Fatal(err)
	}
	if want := "\ndata: 2 things, 12 MB resident with all replicas, logs and the Go heap; 4 runs, the median one is shown: "; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	if residentBytes() < 1<<20 {
		t.Error("the system does not say how much memory is resident")
	}
}
