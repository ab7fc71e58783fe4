package btree

import (
	"errors"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// damage opens a node of a tree and damages it.
func damage(t *testing.T, tr *Tree, p region.Ptr, spoil func(n node)) {
	t.Helper()
	must(t, tr.m, func(tx *txn.Tx) error {
		b, err := tx.Write(p)
		if err == nil {
			if p == tr.anchor {
				b = b[anchorHeaderBytes:]
			}
			spoil(node{b})
		}
		return err
	})
}

func TestCheckFinds(t *testing.T) {
	c := openFarm(t, 1)
	for _, tc := range []struct {
		name  string
		spoil func(t *testing.T, tr *Tree, inner, leaf, sibling region.Ptr)
		want  []string
	}{
		{"garbage leaf", func(t *testing.T, tr *Tree, _, leaf, _ region.Ptr) {
			damage(t, tr, leaf, func(n node) { clear(n.b) })
		}, []string{"no node"}},
		{"disordered leaf", func(t *testing.T, tr *Tree, _, leaf, _ region.Ptr) {
			damage(t, tr, leaf, func(n node) { h, o, l := n.slot(0); n.setSlot(1, h, o, l) })
		}, []string{"not after"}},
		{"other fences", func(t *testing.T, tr *Tree, _, leaf, _ region.Ptr) {
			damage(t, tr, leaf, func(n node) {
				f, es := n.decode(0)
				f.low = append([]byte{}, f.low...)
				f.low[len(f.low)-1]--
				build(n.b, tr.id, 0, f, es)
			})
		}, []string{"its parent has it at"}},
		{"reachable twice", func(t *testing.T, tr *Tree, inner, leaf, _ region.Ptr) {
			damage(t, tr, inner, func(n node) { n.setValue(2, n.value(1)) })
		}, []string{"reachable twice"}},
		{"lost leaf", func(t *testing.T, tr *Tree, _, leaf, _ region.Ptr) {
			must(t, tr.m, func(tx *txn.Tx) error { return tx.Free(leaf) })
		}, []string{"cannot be read"}},
		{"wrong level", func(t *testing.T, tr *Tree, inner, _, _ region.Ptr) {
			damage(t, tr, inner, func(n node) { n.b[levelAt] = 3 })
		}, []string{"of level 3 below level"}},
		{"lonely child", func(t *testing.T, tr *Tree, inner, _, _ region.Ptr) {
			damage(t, tr, inner, func(n node) {
				for n.count() > 1 {
					n.remove(1)
				}
			})
		}, []string{"inner node with 1 children"}},
		{"no pointer", func(t *testing.T, tr *Tree, inner, _, _ region.Ptr) {
			damage(t, tr, inner, func(n node) { n.setValue(1, value{1}) })
		}, []string{"entry 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := createTree(t, c, smallNodes)[0]
			insertRange(t, tr, 0, 300)
			s := tr.scratch()
			defer s.free()
			n, inner, err := tr.descend(s, position{key: intKey(150)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			leaf, _ := n.ptr(1)
			sibling, _ := n.ptr(0)
			tc.spoil(t, tr, inner, leaf, sibling)
			err = tr.Check(ctx, nil)
			var bad *CheckError
			if !errors.As(err, &bad) || !errors.Is(err, ErrCorrupt) {
				t.Fatalf("check: %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not among: %v", want, err)
				}
			}
		})
	}
}

func TestCheckStopsAtVisitor(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), smallNodes)[0]
	insertRange(t, tr, 0, 100)
	n := 0
	if err := tr.Check(ctx, func([]byte, region.Ptr) error { n++; return errStop }); err != errStop || n != 1 {
		t.Errorf("%v after %d entries", err, n)
	}
	if _, err := tr.Inspect(ctx, Visitor{Node: func(region.Ptr) error { return errStop }}); err != errStop {
		t.Error(err)
	}
}

func TestCheckErrorIsBounded(t *testing.T) {
	var e CheckError
	for range problemsMax + 5 {
		e.add(region.Ptr{}, "x")
	}
	if e.More != 5 || len(e.Problems) != problemsMax || !strings.HasPrefix(e.Error(), "btree: 105 problems") {
		t.Errorf("%d more: %v", e.More, e.Error()[:40])
	}
}

// TestCorruptTreeIsAnError: every kind of access returns an error when it meets damage.
func TestCorruptTreeIsAnError(t *testing.T) {
	c := openFarm(t, 1)
	garbage := func(n node) { clear(n.b) }
	slots := func(n node) { // passes parse
		for i := range n.count() {
			n.setSlot(i, 0, len(n.b)-3, 60000)
		}
	}
	for name, spoil := range map[string]func(n node){"garbage": garbage, "slots": slots} {
		for _, where := range []string{"leaf", "inner", "anchor"} {
			tr := createTree(t, c, smallNodes)[0]
			insertRange(t, tr, 0, 300)
			s := tr.scratch()
			n, p, err := tr.descend(s, position{key: intKey(150)}, 1)
			if err != nil {
				t.Fatal(err)
			}
			switch where {
			case "leaf":
				p, _ = n.ptr(n.child(intKey(150)))
			case "anchor":
				p = tr.anchor
			}
			s.free()
			damage(t, tr, p, spoil)
			accessAll(t, name+" "+where, Open(tr.m, tr.anchor))
		}
	}
}

func accessAll(t *testing.T, name string, tr *Tree) {
	t.Helper()
	key := intKey(150)
	_, _, lookup := tr.Lookup(key)
	tx := tr.m.Begin()
	_, scan := scanAll(tr.Scan(tx, nil, nil, false))
	_, reverse := scanAll(tr.Scan(tx, nil, nil, true))
	tx.Abort()
	tx = tr.m.Begin()
	change := tr.Put(tx, append(key, 1), rowPtr(1))
	if change == nil {
		change = tx.Commit(ctx)
	}
	tx.Abort()
	for what, err := range map[string]error{"lookup": lookup, "scan": scan, "reverse": reverse, "change": change, "check": tr.Check(ctx, nil)} {
		if err == nil && what == "lookup" {
			continue // a key that cannot be found among damaged slots is absent
		}
		if err == nil {
			t.Errorf("%s: %s succeeds", name, what)
		}
	}
	if err := tr.Destroy(ctx, nil); err == nil {
		t.Errorf("%s: destroy succeeds", name)
	}
}
