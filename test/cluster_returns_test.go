package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
)

// A comeback has the times and bytes that a killed machine with its memory needed to have
// everything again. Times count from its start.
type comeback struct {
	megabytes int // of data
	changed   int // rows, while it was away
	whole     time.Duration
	read      int64 // bytes, because they may have changed
	held      int64 // of its replicas
}

// TestReturns: a machine that comes back with its memory reads the data that changed while it was
// away, and not all of its data. With FARMSQL_RETURNS_PLOT=FILE the test uses much data, and plots
// the times to FILE.svg and FILE.png. It logs the table.
func TestReturns(t *testing.T) {
	sizes, changes, rounds := []int{8, 24}, []int{0, 20}, 1
	file := os.Getenv("FARMSQL_RETURNS_PLOT")
	if file != "" {
		sizes, changes, rounds = []int{100, 400, 1600}, []int{0, 30, 100, 300, 1000}, 3
	}
	var all []comeback
	for _, megabytes := range sizes {
		t.Run(fmt.Sprint(megabytes, " MB"), func(t *testing.T) { all = append(all, comebacks(t, megabytes, changes, rounds)...) })
	}
	if t.Failed() {
		return
	}
	t.Logf("\n%s", comebackTable(all))
	if file != "" {
		if err := plotComebacks(file, all); err != nil {
			t.Error(err)
		}
	}
}

// comebacks starts a cluster with that much data, and makes its machines come back in turn.
func comebacks(t *testing.T, megabytes int, changes []int, rounds int) (all []comeback) {
	f := newFleet(t, 3, 3, "")
	f.patience = 5 * time.Minute
	if megabytes >= 100 {
		f.more = []string{"--region-size", "64MiB"}
	}
	f.keepLogs()
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t), regionsWait: true}
	l.prepare()
	b := &ballast{t: t, load: l}
	b.prepare(megabytes << 20)
	rnd := rand.New(rand.NewPCG(l.seed, 0))
	for range rounds {
		for n, changed := range changes {
			c := b.comeBack(f.machines[n%len(f.machines)], changed, rnd)
			c.megabytes = megabytes
			all = append(all, c)
		}
	}
	for _, m := range f.machines {
		b.verify(m)
	}
	return all
}

// Bounds of the chunks that a machine may read: a changed row may be in two chunks, and each region
// has some chunks that change by themselves.
const (
	chunkBytes      = 64 << 10
	chunksOfARow    = 2
	chunksOfARegion = 2
)

// comeBack kills a machine, changes rows, starts it again and awaits everything.
func (b *ballast) comeBack(victim *machine, changed int, rnd *rand.Rand) comeback {
	t, f := b.t, b.load.fleet
	t.Helper()
	f.awaitWhole()
	victim.kill()
	f.wait("the machine to be left out", func() bool { return !f.isMember(victim) })
	other := f.machines[(victim.id+1)%len(f.machines)]
	db := b.load.connect(other, "fleet")
	defer db.Close()
	for range changed {
		if err := b.load.again(func() error { return b.touch(t.Context(), db, other, rnd) }); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	victim.start()
	f.wait("all regions to have all replicas", f.isWhole)
	c := comeback{changed: changed, whole: time.Since(begin)}
	f.awaitServing()
	c.read, c.held = victim.filledOf(begin)
	most := int64(changed*chunksOfARow+len(f.configuration().Regions)*chunksOfARegion) * chunkBytes
	// The machine reads at the slow pace, at most 4 MB/s. The rest takes hardly any time, no matter
	// how much the machine holds.
	if longest := activeMax + time.Duration(c.read)*time.Second/(1<<20); c.whole > longest {
		t.Errorf("%d rows changed: full again after %v, at most %v expected for the %d bytes read", changed, c.whole, longest, c.read)
	}
	if c.read > most {
		t.Errorf("%d rows changed: %d bytes read, at most %d expected, of %d that are held", changed, c.read, most, c.held)
	}
	return c
}

func comebackTable(all []comeback) string {
	var b strings.Builder
	b.WriteString("| data, MB | rows changed | full again after, s | read, MB | held, MB |\n| ---:| ---:| ---:| ---:| ---:|\n")
	for _, c := range all {
		fmt.Fprintf(&b, "| %d | %d | %.2f | %.1f | %.0f |\n", c.megabytes, c.changed, c.whole.Seconds(), float64(c.read)/1e6, float64(c.held)/1e6)
	}
	return b.String()
}

// plotComebacks plots the time over the bytes that were read, and over those that are held, to
// file.svg and file.png.
func plotComebacks(file string, all []comeback) error {
	const seconds = "seconds until everything is full again"
	overRead := bench.NewPlot("A machine comes back with its memory: time over what was read", "MB read, because they may have changed", seconds)
	overHeld := bench.NewPlot("The same: time over what it holds", "MB held by its replicas", seconds)
	err := series(overRead, all,
		func(c comeback) string { return fmt.Sprintf("%d MB of data", c.megabytes) },
		func(c comeback) float64 { return float64(c.read) / 1e6 })
	if err == nil {
		err = series(overHeld, all,
			func(c comeback) string { return fmt.Sprintf("%d rows changed", c.changed) },
			func(c comeback) float64 { return float64(c.held) / 1e6 })
	}
	if err != nil {
		return err
	}
	return bench.SavePlots(file, overRead, overHeld)
}

// series draws points, a colour for each name in the order in which they come.
func series(p *plot.Plot, all []comeback, name func(comeback) string, x func(comeback) float64) error {
	points := make(map[string]plotter.XYs)
	var names []string
	for _, c := range all {
		n := name(c)
		if points[n] == nil {
			names = append(names, n)
		}
		points[n] = append(points[n], plotter.XY{X: x(c), Y: c.whole.Seconds()})
	}
	for i, n := range names {
		dots, err := plotter.NewScatter(points[n])
		if err != nil {
			return err
		}
		dots.Color, dots.Shape = plotutil.Color(i), plotutil.Shape(i)
		p.Add(dots)
		p.Legend.Add(n, dots)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.X.Min, p.Y.Min = 0, 0
	return nil
}
