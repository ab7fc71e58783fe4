package tao

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"golang.org/x/sync/errgroup"
)

// opened returns the graph store on a small target, without a graph.
func opened(t *testing.T, cfg bench.TargetConfig, c Config) *Workload {
	t.Helper()
	cfg.Workers, cfg.RegionSize, cfg.LogSize = 1, 32*farmsql.MiB, farmsql.MiB
	target, err := bench.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	w, err := New(target, c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func loaded(t *testing.T, cfg bench.TargetConfig, nodes int) *Workload {
	t.Helper()
	w := opened(t, cfg, Config{Nodes: nodes, Seed: 42})
	if err := errors.Join(w.Load(t.Context(), nil), w.Check(t.Context())); err != nil {
		t.Fatal(err)
	}
	return w
}

func run(t *testing.T, w *Workload, each int) *bench.Result {
	t.Helper()
	res, err := bench.Run(t.Context(), w.target, w, bench.Options{Threads: 2, Transactions: each, Seed: 7, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := range res.Kinds {
		sum += share[i]
	}
	for i, k := range res.Kinds {
		if part := float64(k.Count) / float64(res.Total.Count); math.Abs(part-share[i]/sum) > 0.02 {
			t.Errorf("%s: %.3f of the operations, want %.3f", k.Name, part, share[i]/sum)
		}
	}
	return res
}

func TestNative(t *testing.T) { run(t, loaded(t, bench.TargetConfig{}, 2000), 10_000) }

// On several machines assoc_get runs where the node is.
func TestNativeOnThreeMachines(t *testing.T) {
	w := loaded(t, bench.TargetConfig{Machines: 3, Replicas: 2}, 500)
	res := run(t, w, 3000)
	if res.Reads.Messages < 0.05 || res.Reads.Remote < 0.4 {
		t.Errorf("%+v", res.Reads)
	}
}

// NSDI'14 section 4.4: operations that are lock-free reads take 1.02 reads.
func TestLockFreeReads(t *testing.T) {
	w := opened(t, bench.TargetConfig{Machines: 3}, Config{Nodes: 1000, Seed: 42, LockFree: true})
	if err := w.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c := newTestClient(t, w, 0)
	before := w.target.Machine(0).Stats()
	const operations = 20_000
	for range operations {
		if _, err := c.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := w.target.Machine(0).Stats().Sub(before)
	if reads := float64(s.LocalReads+s.RemoteReads) / operations; reads < 1 || reads > 1.02 || s.Messages > 0 {
		t.Errorf("%.4f reads an operation, and %d messages", reads, s.Messages)
	}
	if res := run(t, w, 500); len(res.Kinds) != 3 || w.Name() == "TAO" {
		t.Errorf("%s: %+v", w.Name(), res.Kinds)
	}
}

func newTestClient(t *testing.T, w *Workload, machine int) *client {
	t.Helper()
	c, err := w.NewClient(t.Context(), &bench.Thread{Machine: machine, Number: uint32(machine + 1), Seed: uint64(machine)})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*client)
}

// Clients that only update a few nodes leave a consistent graph, even if processes remember
// outdated heads.
func TestUpdates(t *testing.T) {
	w := loaded(t, bench.TargetConfig{Machines: 3, Replicas: 3}, 60)
	var clients errgroup.Group
	for m := range 3 {
		c := newTestClient(t, w, m)
		for k := range kinds { // a tenth of them reads
			c.mix.upTo[k] = float64(k + 1)
			if k > assocGet {
				c.mix.upTo[k] = 4 + 9*float64(k-assocGet)
			}
		}
		clients.Go(func() error {
			for range 600 {
				if _, err := c.Do(t.Context()); err != nil && !errors.Is(err, bench.ErrMiss) {
					return err
				}
			}
			return nil
		})
	}
	if err := errors.Join(clients.Wait(), w.Check(t.Context())); err != nil {
		t.Fatal(err)
	}
	if n, _, err := w.target.Counted(); err != nil || n == 0 {
		t.Errorf("nothing is counted: %v", err)
	}
}

// Reads return what was loaded, at each machine.
func TestReads(t *testing.T) {
	w := loaded(t, bench.TargetConfig{Machines: 2}, 300)
	longest := uint64(1)
	for id := range w.gen.nodes {
		if w.gen.degree(id+1) > w.gen.degree(longest) {
			longest = id + 1
		}
	}
	for m := range 2 {
		c := newTestClient(t, w, m)
		for _, id := range []uint64{1, 20, longest} {
			testReads(t, c, &w.refs[id-1])
		}
	}
}

func testReads(t *testing.T, c *client, n *ref) {
	t.Helper()
	do := func(r request) []byte {
		t.Helper()
		r.node = n
		if err := c.execute(t.Context(), &r); err != nil {
			t.Fatalf("%s: %v", kindNames[r.kind], err)
		}
		return c.found
	}
	want := make([]byte, c.s.w.gen.length(n.id))
	fillData(want, n.id, 1)
	if got := do(request{kind: objGet}); !bytes.Equal(got, want) {
		t.Errorf("node %d: data %x", n.id, got)
	}
	for kind := range uint8(types) {
		edges := c.s.edges(n.id, kind)
		if do(request{kind: assocCount, edge: kind}); c.count != len(edges) {
			t.Errorf("node %d: %d edges, want %d", n.id, c.count, len(edges))
		}
		var newest, all []byte
		var to []*ref
		for i, e := range edges {
			if all = append(all, e[:]...); i < rangeEdges {
				newest = all
			}
			to = append(to, &c.s.w.refs[c.s.w.gen.target(n.id, kind, i)-1])
		}
		for _, head := range []region.Ptr{n.heads[kind].load(), {}, n.ptr} { // known, unknown, wrong
			n.heads[kind].store(head)
			if got := do(request{kind: assocRange, edge: kind}); !bytes.Equal(got, newest) {
				t.Errorf("node %d: newest edges %x, want %x", n.id, got, newest)
			}
		}
		if got := do(request{kind: assocGet, edge: kind, targets: to}); len(got) != len(all) {
			t.Errorf("node %d: edges %x, want %x", n.id, got, all)
		}
		if got := do(request{kind: assocGet, edge: kind, targets: []*ref{{ptr: region.MakePtr(1<<33, 1, 1)}}}); len(got) > 0 {
			t.Errorf("node %d: edges to nowhere %x", n.id, got)
		}
	}
}

// Lists behave like a sorted slice, with edges of any times added and removed in any order.
func TestList(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, 500)
	c := newTestClient(t, w, 0)
	rnd := rand.New(rand.NewPCG(1, 2))
	n := &w.refs[7]
	var model []request
	for _, k := range []int{0, 1} { // begin with an empty list
		for i := range w.gen.count(n.id, uint8(k)) {
			to := &w.refs[w.gen.target(n.id, uint8(k), i)-1]
			testDo(t, c, request{kind: assocDelete, node: n, edge: uint8(k), targets: []*ref{to}})
		}
	}
	for round := range 3000 {
		to := &w.refs[rnd.IntN(len(w.refs))]
		i := slices.IndexFunc(model, func(r request) bool { return r.targets[0] == to })
		r := request{kind: assocAdd, node: n, targets: []*ref{to}, time: uint64(10_000 + round)}
		if round%3 == 0 {
			r.time = uint64(rnd.IntN(10_000)) // late
		}
		if len(model) > 0 && (round/500)%2 == 1 {
			i = rnd.IntN(len(model))
			r = request{kind: assocDelete, node: n, targets: model[i].targets}
		}
		testDo(t, c, r)
		if i >= 0 {
			model = slices.Delete(model, i, i+1)
		}
		if r.kind == assocAdd {
			at := slices.IndexFunc(model, func(o request) bool { return o.time <= r.time })
			if at < 0 {
				at = len(model)
			}
			model = slices.Insert(model, at, r)
		}
		if round%20 == 0 {
			compare(t, c, n, model)
		}
	}
	if err := w.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func testDo(t *testing.T, c *client, r request) {
	t.Helper()
	err := c.execute(t.Context(), &r)
	if err == nil {
		err = c.s.w.target.Count(c.delta)
	}
	if err != nil {
		t.Fatalf("%s: %v", kindNames[r.kind], err)
	}
}

func compare(t *testing.T, c *client, n *ref, model []request) {
	t.Helper()
	var l list
	var times []uint64
	err := c.m.Run(t.Context(), func(tx *txn.Tx) error {
		times = nil
		if err := l.open(tx, n.ptr, n.id, 0, edgesAll); err != nil {
			return err
		}
		for _, b := range l.blocks {
			for i := range b.n() {
				times = append(times, b.time(i))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []uint64(nil)
	for _, r := range model {
		want = append(want, r.time)
	}
	if !slices.Equal(times, want) {
		t.Fatalf("times %v, want %v", times, want)
	}
	if err := c.execute(t.Context(), &request{kind: assocRange, node: n}); err != nil || len(c.found) != edgeBytes*min(rangeEdges, len(model)) {
		t.Fatalf("a range of %d bytes of %d edges: %v", len(c.found), len(model), err)
	}
	for i := range len(c.found) / edgeBytes {
		if got := binary.LittleEndian.Uint64(c.found[i*edgeBytes+edgeTime:]); got != want[i] {
			t.Fatalf("edge %d of the range: time %d, want %d", i, got, want[i])
		}
	}
}

// Operations on a node that has been deleted have nothing to do; edges to it stay.
func TestDeletedNode(t *testing.T) {
	w := loaded(t, bench.TargetConfig{Machines: 2}, 100)
	for m := range 2 {
		c, n := newTestClient(t, w, m), &w.refs[3+m*batch]
		testDo(t, c, request{kind: objDelete, node: n})
		for at := range 2 {
			c := newTestClient(t, w, at)
			for k := range kinds {
				if k == objAdd {
					continue
				}
				if err := c.execute(t.Context(), &request{kind: k, node: n, targets: []*ref{&w.refs[50]}}); !errors.Is(err, bench.ErrMiss) {
					t.Errorf("%s: %v", kindNames[k], err)
				}
			}
		}
	}
	if err := w.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A machine checks the requests that another one sends.
func TestShipped(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, 20)
	m := w.target.Machine(0)
	good := append(w.refs[0].ptr.Append(appendKey(nil, 1)), 0)
	if _, err := m.ShipTo(t.Context(), m.ID(), handlerAssocGet, good); err != nil {
		t.Error(err)
	}
	pointer, kind := slices.Clone(good), slices.Clone(good)
	copy(pointer[keyBytes:], "not a pointer at all")
	kind[scanBytes-1] = types
	for name, arg := range map[string][]byte{"short": good[:5], "half a name": append(good, 1), "no pointer": pointer, "no type": kind} {
		if _, err := m.ShipTo(t.Context(), m.ID(), handlerAssocGet, arg); err == nil {
			t.Error(name)
		}
	}
}

// Each way to break the graph is caught.
func TestCheckCatches(t *testing.T) {
	const nodes = 60
	g := generator{42, nodes}
	id := uint64(1) // of a node with two blocks of edges of type 0
	for g.count(id, 0) <= edgesMax || g.count(id, 0) > 2*edgesMax {
		if id++; id > nodes {
			t.Fatal("no node of the degree")
		}
	}
	for name, breakIt := range map[string]func(w *Workload, t *txn.Tx, l *list, n node) error{
		"name gone": func(w *Workload, t *txn.Tx, _ *list, _ node) error {
			_, err := w.store.names[0].Delete(t, appendKey(nil, id))
			return err
		},
		"name of another": func(w *Workload, t *txn.Tx, _ *list, _ node) error {
			return w.store.names[0].Put(t, appendKey(nil, id), appendName(nil, w.refs[id%nodes].ptr, false))
		},
		"name too many": func(w *Workload, t *txn.Tx, _ *list, _ node) error {
			_, err := w.store.addNode(t, 0, 1000, 10, 0)
			return err
		},
		"name without a node": func(w *Workload, t *txn.Tx, _ *list, _ node) error {
			return w.store.names[0].Put(t, appendKey(nil, 1000), appendName(nil, w.refs[0].ptr.Element(1), false))
		},
		"name that is none": func(w *Workload, t *txn.Tx, _ *list, _ node) error {
			return w.store.names[0].Put(t, appendKey(nil, 1000), bytes.Repeat([]byte{1}, nameBytes))
		},
		"name with a mark": func(w *Workload, t *txn.Tx, _ *list, _ node) error {
			return w.store.names[0].Put(t, appendKey(nil, id), append(w.refs[id-1].ptr.Append(nil), 2))
		},
		"node gone":     func(w *Workload, t *txn.Tx, _ *list, _ node) error { return t.Free(w.refs[id-1].ptr) },
		"other id":      func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n[0]++; return nil },
		"other version": func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n[nodeVersion]++; return nil },
		"version 0": func(_ *Workload, _ *txn.Tx, _ *list, n node) error {
			clear(n[nodeVersion:][:4])
			fillData(n.data(), id, 0)
			return nil
		},
		"other type":         func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n[nodeType]++; return nil },
		"too long":           func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n[nodeLength+1] = 255; return nil },
		"other data":         func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n.data()[0]++; return nil },
		"count":              func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n.setCount(0, n.count(0)+1); return nil },
		"no head":            func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n.setHead(0, region.Ptr{}); return nil },
		"head no pointer":    func(_ *Workload, _ *txn.Tx, _ *list, n node) error { n[nodeHeads] = 3; return nil },
		"head in the middle": func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].setHead(true); return nil },
		"head that is none":  func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[0].setHead(false); return nil },
		"block of another":   func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].block[0]++; return nil },
		"block of a type":    func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].block[blockType]++; return nil },
		"block too full":     func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].setN(15); return nil },
		"block empty": func(_ *Workload, _ *txn.Tx, l *list, n node) error {
			n.setCount(0, edgesMax)
			l.blocks[1].setN(0)
			return nil
		},
		"block gone":      func(_ *Workload, t *txn.Tx, l *list, _ node) error { return t.Free(l.blocks[1].ptr) },
		"next no pointer": func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].block[blockNext] = 3; return nil },
		"in a circle":     func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].setNext(l.blocks[1].ptr); return nil },
		"order": func(w *Workload, _ *txn.Tx, l *list, _ node) error {
			return reput(l, 0, 3, w.refs[g.target(id, 0, 3)-1].ptr, newest+1)
		},
		"order of blocks": func(w *Workload, _ *txn.Tx, l *list, _ node) error {
			return reput(l, 1, 0, w.refs[g.target(id, 0, edgesMax)-1].ptr, newest)
		},
		"edge twice": func(w *Workload, _ *txn.Tx, l *list, _ node) error {
			return reput(l, 0, 3, w.refs[g.target(id, 0, 1)-1].ptr, newest-3)
		},
		"edge to nowhere": func(w *Workload, _ *txn.Tx, l *list, _ node) error {
			return reput(l, 0, 3, w.refs[0].ptr.Element(99), newest-3)
		},
		"edge to a block":     func(_ *Workload, _ *txn.Tx, l *list, _ node) error { return reput(l, 0, 3, l.blocks[1].ptr, newest-3) },
		"edge's data":         func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[1].edge(0)[edgeData]++; return nil },
		"edge's time":         func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[0].edge(0)[edgeTime]++; return nil },
		"edge without a name": func(_ *Workload, _ *txn.Tx, l *list, _ node) error { l.blocks[0].edge(0)[0] = 3; return nil },
		"edge too many":       func(_ *Workload, _ *txn.Tx, l *list, _ node) error { return l.remove(1, 0) },
	} {
		w := loaded(t, bench.TargetConfig{}, nodes)
		err := w.target.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
			var l list
			err := l.open(tx, w.refs[id-1].ptr, id, 0, edgesAll)
			for in := range l.blocks {
				err = errors.Join(err, l.write(in))
			}
			n, changed := l.change(0)
			return errors.Join(err, changed, breakIt(w, tx, &l, n))
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := w.Check(t.Context()); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// reput replaces an edge.
func reput(l *list, in, i int, to region.Ptr, time uint64) error {
	putEdge(l.blocks[in].edge(i), l.id, l.kind, to, time)
	return nil
}

// Operations that meet an impossible state end the run.
func TestBroken(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, 60)
	id := uint64(1)
	for w.gen.count(id, 0) == 0 {
		id++
	}
	n, c := &w.refs[id-1], newTestClient(t, w, 0)
	damage := func(change func(l *list) error) {
		t.Helper()
		err := w.target.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
			var l list
			if err := errors.Join(l.open(tx, n.ptr, id, 0, edgesAll), l.write(0)); err != nil {
				return err
			}
			return change(&l)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(of ...kind) {
		t.Helper()
		for _, k := range of {
			n.heads[0].store(region.Ptr{})
			if err := c.execute(t.Context(), &request{kind: k, node: n, targets: []*ref{n}}); !errors.Is(err, bench.ErrInconsistent) {
				t.Errorf("%s: %v", kindNames[k], err)
			}
		}
	}
	damage(func(l *list) error { l.blocks[0].block[0]++; return nil })
	expect(assocRange, assocGet, assocAdd, assocDelete, objDelete)
	if err := w.Attach(t.Context()); err != nil {
		t.Error(err)
	}
	err := w.target.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
		payload, err := tx.Write(n.ptr)
		if err == nil {
			payload[nodeHeads] = 3
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(assocRange, assocGet, assocAdd, assocDelete, objDelete)
	if err := w.Attach(t.Context()); !errors.Is(err, bench.ErrInconsistent) {
		t.Errorf("heads: %v", err)
	}
	for _, name := range [][]byte{nil, bytes.Repeat([]byte{1}, nameBytes)} {
		err := w.target.Machine(0).Run(t.Context(), func(tx *txn.Tx) error {
			if name == nil {
				_, err := w.store.names[0].Delete(tx, appendKey(nil, id))
				return err
			}
			return w.store.names[0].Put(tx, appendKey(nil, id), name)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Attach(t.Context()); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("name %x: %v", name, err)
		}
	}
}

// Each step of loading that fails is an error.
func TestLoadFails(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := opened(t, bench.TargetConfig{}, Config{Nodes: 100, Seed: 42})
	if err := w.Load(gone, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := w.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func(context.Context, int, uint64, uint64) error{"nodes": w.store.loadNodes, "edges": w.store.loadEdges} {
		if err := load(gone, 0, 1, 100); err == nil {
			t.Errorf("%s again, cancelled", name)
		}
	}
	if err := w.Load(t.Context(), nil); err == nil {
		t.Error("loaded again")
	}
	if err := w.Attach(gone); err == nil {
		t.Error("attached, cancelled")
	}
}

func TestConfig(t *testing.T) {
	for _, n := range []int{-1, nodesMax + 1} {
		if _, err := New(&bench.Target{}, Config{Nodes: n}); err == nil {
			t.Errorf("%d nodes", n)
		}
	}
	w, err := New(&bench.Target{}, Config{})
	if err != nil || w.Scale() != (bench.Scale{N: 100_000, Unit: "nodes"}) || w.Name() != "TAO" || len(w.Kinds()) != int(kinds) {
		t.Errorf("%+v, %v", w, err)
	}
	target, err := bench.Open(t.Context(), bench.TargetConfig{API: bench.SQL})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := New(target, Config{}); err == nil {
		t.Error("through SQL")
	}
}

// Degrees and lengths are as the package describes them.
func TestGenerator(t *testing.T) {
	const n = 200_000
	g := generator{1, n}
	edges, none, most := 0, 0, 0
	var lengths []int
	for id := range uint64(n) {
		d := g.degree(id + 1)
		edges, most, lengths = edges+d, max(most, d), append(lengths, g.length(id+1))
		if d == 0 {
			none++
		}
		if g.count(id+1, 0)+g.count(id+1, 1) != d {
			t.Fatalf("node %d: %d and %d edges of %d", id+1, g.count(id+1, 0), g.count(id+1, 1), d)
		}
	}
	slices.Sort(lengths)
	for what, c := range map[string]struct{ got, want float64 }{
		"degree": {float64(edges) / n, 4.35}, "none": {float64(none) / n, 0.39}, "median": {float64(lengths[n/2]), dataMedian},
	} {
		if math.Abs(c.got/c.want-1) > 0.03 {
			t.Errorf("%s: %.3f, want %.3f", what, c.got, c.want)
		}
	}
	if most < degreeMax/2 || lengths[n-1] <= 10*dataMedian || lengths[n-1] > dataMax {
		t.Errorf("at most %d edges and %d bytes", most, lengths[n-1])
	}
	seen := make(map[uint64]bool)
	few := generator{1, 50}
	for k := range 25 {
		seen[few.target(3, 0, k)], seen[few.target(3, 1, k)] = true, true
	}
	if len(seen) != 50 {
		t.Errorf("%d targets of 50 edges among 50 nodes", len(seen))
	}
}

func TestCounted(t *testing.T) {
	n := counted(3, -700) + counted(-5, 20) + counted(-1, 1)
	if nodes, edges := counts(n); nodes != -3 || edges != -679 {
		t.Errorf("%d nodes and %d edges", nodes, edges)
	}
}
