package btree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/region"
)

const testTree = 0x1_0000_0040

func val(i int) (v value) {
	binary.LittleEndian.PutUint64(v[:], uint64(i+1)<<6)
	return v
}

func sortedKeys(m map[string]value) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func entriesOf(keys ...string) []entry {
	var es []entry
	for i, k := range keys {
		es = append(es, entry{[]byte(k), val(i)})
	}
	return es
}

// checkNode compares a node with a model and checks its own rules.
func checkNode(t *testing.T, n node, model map[string]value) {
	t.Helper()
	if _, err := parse(n.b, testTree); err != nil {
		t.Fatal(err)
	}
	if err := n.validate(); err != nil {
		t.Fatal(err)
	}
	keys := sortedKeys(model)
	if n.count() != len(keys) {
		t.Fatalf("node holds %d entries, the model %d", n.count(), len(keys))
	}
	for i, k := range keys {
		if got := n.appendKey(nil, i); string(got) != k {
			t.Fatalf("key %d is %q, want %q", i, got, k)
		}
		if n.value(i) != model[k] {
			t.Fatalf("value of %q differs", k)
		}
		if j, found := n.search([]byte(k)); j != i || !found {
			t.Fatalf("search %q: %d %v, want %d", k, j, found, i)
		}
	}
}

// randomKey draws a short key over a small alphabet with zero bytes. So keys that are prefixes of
// others, equal heads and duplicates are common.
func randomKey(r *rand.Rand, prefix string) string {
	b := []byte(prefix)
	for range r.IntN(9) {
		b = append(b, "\x00\x01ab\xff"[r.IntN(5)])
	}
	return string(b)
}

func TestNodeAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := fences{}
		prefix := ""
		if seed%2 == 0 {
			prefix = "pre"
			f = fences{[]byte("pre"), []byte("prf")}
		}
		if seed%4 == 0 {
			prefix = "prefixed"
			f = fences{[]byte("prefixed"), []byte("prefixed\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}
		}
		n := build(make([]byte, 256+r.IntN(800)), testTree, 0, f, nil)
		model := map[string]value{}
		full := 0
		for op := range 400 {
			k := randomKey(r, prefix)
			i, found := n.search([]byte(k))
			if _, want := model[k]; found != want {
				t.Fatalf("seed %d: search %q says %v", seed, k, found)
			}
			switch {
			case found && r.IntN(3) > 0:
				n.remove(i)
				delete(model, k)
			case found:
				n.setValue(i, val(op))
				model[k] = val(op)
			default:
				room := len(n.b)-n.used() >= entryBytes+len(k)-n.prefix()
				if n.insert(i, []byte(k), val(op)) != room {
					t.Fatalf("seed %d: insert with room %v", seed, room)
				}
				if room {
					model[k] = val(op)
				} else {
					full++
				}
			}
			if op%20 == 0 {
				checkNode(t, n, model)
			}
		}
		checkNode(t, n, model)
		if full == 0 {
			t.Errorf("seed %d: the node was never full", seed)
		}
		checkInner(t, n)
		f2, es := n.decode(0)
		if nodeSize(f2, es) != n.used() {
			t.Errorf("nodeSize %d, used %d", nodeSize(f2, es), n.used())
		}
		checkNode(t, build(make([]byte, n.used()), testTree, 0, f2, es), model)
	}
}

func TestSearchTouchesOrder(t *testing.T) {
	n := build(make([]byte, 1000), testTree, 1, fences{}, entriesOf("", "b", "b\x00", "bb", "bbbb", "bbbb\x00", "bbbbc", "z"))
	for _, c := range []struct {
		key  string
		want int
	}{{"", 0}, {"a", 0}, {"b", 1}, {"b\x00", 2}, {"b\x00\x00", 2}, {"ba", 2}, {"bbb", 3}, {"bbbb", 4}, {"bbbb\x00\x00", 5}, {"bbbbb", 5}, {"bbbbd", 6}, {"zz", 7}} {
		if got := n.child([]byte(c.key)); got != c.want {
			t.Errorf("child(%q) = %d, want %d", c.key, got, c.want)
		}
	}
}

func TestPositions(t *testing.T) {
	n := build(make([]byte, 500), testTree, 1, fences{[]byte("d"), []byte("m")}, entriesOf("d", "g", "k"))
	for _, c := range []struct {
		pos    position
		within bool
		child  int
	}{
		{position{[]byte("d"), at}, true, 0},
		{position{[]byte("h"), at}, true, 1},
		{position{[]byte("m"), at}, false, 0},
		{position{[]byte("d"), before}, false, 0},
		{position{[]byte("e"), before}, true, 0},
		{position{[]byte("g"), before}, true, 0},
		{position{[]byte("m"), before}, true, 2},
		{position{[]byte("n"), before}, false, 0},
		{position{side: end}, false, 0},
	} {
		if got := c.pos.within(n); got != c.within {
			t.Errorf("%+v within [d,m): %v", c.pos, got)
		} else if got && c.pos.child(n) != c.child {
			t.Errorf("%+v leads to child %d, want %d", c.pos, c.pos.child(n), c.child)
		}
	}
	last := build(make([]byte, 500), testTree, 1, fences{[]byte("m"), nil}, entriesOf("m", "q"))
	if pos := (position{side: end}); !pos.within(last) || pos.child(last) != 1 {
		t.Error("the end is not in the last node")
	}
}

// TestPartition splits random entries of all lengths and checks what a split promises: the pieces are
// a partition; each is within its fences; a piece over budget has too few entries to split; and every
// piece can be built.
func TestPartition(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		budget := 200 + r.IntN(2000)
		longest := []int{4, 20, 300, MaxKeyBytes}[r.IntN(4)]
		model := map[string]value{}
		for i := range 1 + r.IntN(120) {
			k := make([]byte, 1+r.IntN(longest))
			for j := range k {
				k[j] = byte(r.IntN(4))
			}
			model[string(k)] = val(i)
		}
		var es []entry
		for _, k := range sortedKeys(model) {
			es = append(es, entry{[]byte(k), model[k]})
		}
		leaf, ascending := r.IntN(2) == 0, r.IntN(2) == 0
		f := fences{}
		if !leaf {
			f.low = es[0].key
		}
		pieces := partition(f, es, leaf, budget, ascending)
		var all []entry
		low := f.low
		for i, p := range pieces {
			if !bytes.Equal(p.low, low) {
				t.Fatalf("seed %d: piece %d begins at %x, the one before ends at %x", seed, i, p.low, low)
			}
			low = p.high
			all = append(all, p.entries...)
			need := nodeSize(p.fences, p.entries)
			if len(p.entries) == 0 || need > budget && len(p.entries) >= minSplit {
				t.Fatalf("seed %d: piece %d of %d entries, %d bytes with a budget of %d", seed, i, len(p.entries), need, budget)
			}
			level := 1
			if leaf {
				level = 0
			}
			n := build(make([]byte, need), testTree, level, p.fences, p.entries)
			if err := n.validate(); err != nil {
				t.Fatalf("seed %d: piece %d: %v", seed, i, err)
			}
		}
		if len(low) != 0 {
			t.Fatalf("seed %d: the last piece ends at %x", seed, low)
		}
		if !slices.EqualFunc(all, es, func(a, b entry) bool { return bytes.Equal(a.key, b.key) && a.val == b.val }) {
			t.Fatalf("seed %d: entries lost or changed", seed)
		}
	}
}

// TestAscendingSplitFillsLeft inserts keys as AUTO_INCREMENT does.
func TestAscendingSplitFillsLeft(t *testing.T) {
	var es []entry
	for i := range 1000 {
		es = append(es, entry{fmt.Appendf(nil, "%08d", i), val(i)})
	}
	pieces := partition(fences{}, es, true, 978, true)
	for i, p := range pieces[:len(pieces)-1] {
		if used := nodeSize(p.fences, p.entries); used < 978*9/10 {
			t.Errorf("piece %d is left with %d of 978 bytes", i, used)
		}
	}
	for _, p := range partition(fences{}, es, true, 978, false) {
		if used := nodeSize(p.fences, p.entries); used < 978/3 || used > 978 {
			t.Errorf("an even split leaves a piece with %d of 978 bytes", used)
		}
	}
}

// TestPartitionOfManyIsFast: a transaction may insert a whole table at once.
func TestPartitionOfManyIsFast(t *testing.T) {
	es := make([]entry, 300_000)
	for i := range es {
		es[i] = entry{fmt.Appendf(nil, "%010d", i), val(i)}
	}
	for _, ascending := range []bool{true, false} {
		begin := time.Now()
		pieces := partition(fences{}, es, true, 978, ascending)
		if took := time.Since(begin); len(pieces) < 5000 || took > 3*time.Second {
			t.Errorf("ascending %v: %d pieces took %v", ascending, len(pieces), took)
		}
	}
}

func TestMerge(t *testing.T) {
	put := func(k string, i int) *change { return &change{key: []byte(k), val: val(i)} }
	del := func(k string) *change { return &change{key: []byte(k), deleted: true} }
	got := merge(entriesOf("b", "d", "f"), []*change{put("a", 9), del("b"), put("d", 8), del("e"), put("z", 7)})
	want := []entry{{[]byte("a"), val(9)}, {[]byte("d"), val(8)}, {[]byte("f"), val(2)}, {[]byte("z"), val(7)}}
	if !slices.EqualFunc(got, want, func(a, b entry) bool { return bytes.Equal(a.key, b.key) && a.val == b.val }) {
		t.Errorf("merge: %q", got)
	}
}

func TestValidateFinds(t *testing.T) {
	fresh := func() node {
		return build(make([]byte, 400), testTree, 0, fences{[]byte("b"), []byte("x")}, entriesOf("c", "d", "e"))
	}
	for name, damage := range map[string]func(n node){
		"order": func(n node) {
			h, o, l := n.slot(0)
			n.setSlot(0, 0, 0, 0)
			hh, oo, ll := n.slot(2)
			n.setSlot(0, hh, oo, ll)
			n.setSlot(2, h, o, l)
		},
		"head":         func(n node) { _, o, l := n.slot(1); n.setSlot(1, 7, o, l) },
		"outside heap": func(n node) { h, _, l := n.slot(1); n.setSlot(1, h, 30, l) },
		"beyond end":   func(n node) { h, _, _ := n.slot(1); n.setSlot(1, h, 398, 60000) },
		"dead":         func(n node) { n.setU16(deadAt, 1) },
		"fences":       func(n node) { n.low()[0] = 'y' },
		"key fence":    func(n node) { n.high()[0] = 'd' },
		"inner":        func(n node) { n.b[levelAt] = 1 },
	} {
		n := fresh()
		if err := n.validate(); err != nil {
			t.Fatal(err)
		}
		damage(n)
		if err := n.validate(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: validate says %v", name, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	fresh := func() []byte {
		return build(make([]byte, 400), testTree, 0, fences{[]byte("b"), []byte("x")}, entriesOf("c", "d")).b
	}
	for name, b := range map[string][]byte{
		"short":   make([]byte, 10),
		"long":    make([]byte, maxNodeBytes+8),
		"magic":   func() []byte { b := fresh(); b[0]++; return b }(),
		"level":   func() []byte { b := fresh(); b[levelAt] = 200; return b }(),
		"tree":    func() []byte { b := fresh(); b[treeAt]++; return b }(),
		"count":   func() []byte { b := fresh(); node{b}.setU16(countAt, 60000); return b }(),
		"heap":    func() []byte { b := fresh(); node{b}.setU16(heapAt, 399); return b }(),
		"dead":    func() []byte { b := fresh(); node{b}.setU16(deadAt, 300); return b }(),
		"prefix":  func() []byte { b := fresh(); node{b}.setU16(prefixAt, 2); return b }(),
		"fences":  func() []byte { b := fresh(); node{b}.setU16(lowAt, 60000); return b }(),
		"garbage": bytes.Repeat([]byte{0xff}, 400),
		"zero":    make([]byte, 400),
	} {
		if _, err := parse(b, testTree); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: parse says %v", name, err)
		}
	}
}

func TestAnchorRefuses(t *testing.T) {
	fresh := func() []byte {
		cfg, _ := Config{}.normalize()
		return buildAnchor(make([]byte, 110), testTree, cfg, 1, entriesOf("")).b
	}
	if a, err := parseAnchor(fresh(), testTree); err != nil || a.destroying() || a.cfg.LeafBytes != defaultLeafBytes {
		t.Fatalf("%+v %v", a, err)
	}
	for name, damage := range map[string]func(b []byte) []byte{
		"short":     func(b []byte) []byte { return b[:60] },
		"magic":     func(b []byte) []byte { b[3]++; return b },
		"node":      func(b []byte) []byte { b[anchorHeaderBytes]++; return b },
		"no budget": func(b []byte) []byte { clear(b[anchorLeafAt:anchorDestroyAt]); return b },
		"level 0":   func(b []byte) []byte { b[anchorHeaderBytes+levelAt] = 0; return b },
		"rootless":  func(b []byte) []byte { node{b[anchorHeaderBytes:]}.remove(0); return b },
	} {
		if _, err := parseAnchor(damage(fresh()), testTree); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	cfg, err := Config{}.normalize()
	if err != nil || cfg.LeafBytes != defaultLeafBytes || cfg.InnerBytes != defaultInnerBytes {
		t.Errorf("default %+v %v: not whole size classes", cfg, err)
	}
	for _, c := range []Config{{LeafBytes: 10}, {InnerBytes: 1 << 20}, {LeafBytes: -1}} {
		if _, err := c.normalize(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// FuzzNode feeds garbage to everything that reads a node that parse accepted.
func FuzzNode(f *testing.F) {
	n := build(make([]byte, 300), testTree, 0, fences{[]byte("ka"), []byte("kz")}, entriesOf("kb", "kcc", "kd"))
	f.Add(bytes.Clone(n.b), []byte("kcc"))
	n.remove(1)
	f.Add(bytes.Clone(n.b), []byte("kx"))
	f.Add(build(make([]byte, 200), testTree, 3, fences{}, entriesOf("", "b", "c")).b, []byte{})
	f.Fuzz(func(t *testing.T, b, key []byte) {
		n, err := parse(b, testTree)
		if err != nil {
			return
		}
		_ = n.covers(key)
		for _, pos := range []position{{key, at}, {key, before}, {nil, end}} {
			if pos.within(n) {
				if p, err := n.childAt(pos); err == nil {
					_ = p.Capacity()
				}
			}
		}
		if i, found := n.search(key); found {
			_ = n.value(i)
			_, _, _ = n.get(key)
		}
		for i := range n.count() {
			_ = n.appendKey(nil, i)
		}
		if n.checkSlots() == nil {
			in := newInner(n, region.Ptr{})
			for i := range n.count() {
				if p, _ := n.ptr(i); !bytes.Equal(in.suffix(i), n.suffix(i)) || in.children[i] != p {
					t.Fatalf("entry %d of the cached node differs", i)
				}
			}
			_, _ = in.search(key)
		}
		if n.validate() != nil || !n.covers(key) || len(key) > MaxKeyBytes {
			return
		}
		edited := node{bytes.Clone(b)}
		if i, found := edited.search(key); !found && edited.level() == 0 && edited.insert(i, key, val(1)) {
			if err := edited.validate(); err != nil {
				t.Fatalf("insert broke the node: %v", err)
			}
			edited.remove(i)
			if err := edited.validate(); err != nil {
				t.Fatalf("remove broke the node: %v", err)
			}
		}
	})
}

// FuzzAnchor reads garbage in the anchor object.
func FuzzAnchor(f *testing.F) {
	cfg, _ := Config{}.normalize()
	f.Add(buildAnchor(make([]byte, 110), testTree, cfg, 2, entriesOf("")).b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAnchor(b, testTree)
		if err == nil && a.count() == 1 {
			_, _ = a.node.ptr(0)
			_, _ = a.node.childAt(position{key: []byte("x")})
		}
	})
}
