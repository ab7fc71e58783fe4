package btree

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// TestShape runs the scripts in testdata. A script has one tree on two machines
// and any number of open transactions:
//
//	create [leaf=N] [inner=N]    makes the tree, with node sizes in bytes
//	insert|put|delete [tx=T]     one key a line; without tx in a transaction of its own
//	begin tx=T [machine=M]       opens a transaction
//	scan tx=T [lo=K] [hi=K] [n=N] [reverse]
//	commit tx=T                  says how it ended
//	shape                        shows the tree: fences, keys and fill of each node
//
// A key "a*40" is forty a's; "a1..a9" are nine keys.
func TestShape(t *testing.T) {
	datadriven.Walk(t, "testdata/shape", func(t *testing.T, path string) {
		s := &script{c: openFarm(t, 2), txs: map[string]*txn.Tx{}}
		datadriven.RunTest(t, path, s.run)
		for _, tx := range s.txs {
			tx.Abort()
		}
		checkMemory(t, s.c, s.trees[0])
	})
}

type script struct {
	c     *farm.Local
	trees []*Tree
	txs   map[string]*txn.Tx
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	switch d.Cmd {
	case "create":
		var cfg Config
		d.MaybeScanArgs(t, "leaf", &cfg.LeafBytes)
		d.MaybeScanArgs(t, "inner", &cfg.InnerBytes)
		s.trees = createTree(t, s.c, cfg)
	case "begin":
		machine := 0
		d.MaybeScanArgs(t, "machine", &machine)
		s.txs[name(t, d)] = s.c.Machine(machine).Begin()
	case "insert", "put", "delete":
		if d.HasArg("tx") {
			tx := s.txs[name(t, d)]
			out.WriteString(s.change(tx, d))
			break
		}
		must(t, s.c.Machine(0), func(tx *txn.Tx) error {
			out.Reset()
			out.WriteString(s.change(tx, d))
			return nil
		})
	case "scan":
		s.scan(t, d, &out)
	case "commit":
		tx := s.txs[name(t, d)]
		if err := tx.Commit(ctx); err != nil {
			fmt.Fprintln(&out, strings.Split(err.Error(), " at ")[0])
		}
	case "shape":
		if err := s.trees[0].Check(ctx, nil); err != nil {
			return err.Error()
		}
		s.show(t, s.trees[0].anchor, "", &out)
	default:
		t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
	}
	if out.Len() == 0 {
		return "ok"
	}
	return out.String()
}

func name(t *testing.T, d *datadriven.TestData) (tx string) {
	d.ScanArgs(t, "tx", &tx)
	return tx
}

// change applies the directive to every key in its input.
func (s *script) change(tx *txn.Tx, d *datadriven.TestData) string {
	tr := s.trees[tx.Machine().ID()]
	for _, line := range strings.Fields(d.Input) {
		for i, key := range scriptKeys(line) {
			var err error
			switch d.Cmd {
			case "insert":
				err = tr.Insert(tx, key, rowPtr(i))
			case "put":
				err = tr.Put(tx, key, rowPtr(i+1000))
			default:
				_, err = tr.Delete(tx, key)
			}
			if err != nil {
				return fmt.Sprintf("%s: %v\n", key, err)
			}
		}
	}
	return ""
}

func scriptKeys(s string) (keys [][]byte) {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	if from, to, ok := strings.Cut(s, ".."); ok {
		c := strings.TrimRight(from, "0123456789")
		digits := from[len(c):]
		for n := number(digits); n <= number(to[len(c):]); n++ {
			keys = append(keys, fmt.Appendf(nil, "%s%0*d", c, len(digits), n))
		}
		return keys
	}
	if c, n, ok := strings.Cut(s, "*"); ok {
		return [][]byte{bytes.Repeat([]byte(c), number(n))}
	}
	return [][]byte{[]byte(s)}
}

func (s *script) scan(t *testing.T, d *datadriven.TestData, out *strings.Builder) {
	tx := s.txs[name(t, d)]
	var lo, hi string
	n := -1
	d.MaybeScanArgs(t, "lo", &lo)
	d.MaybeScanArgs(t, "hi", &hi)
	d.MaybeScanArgs(t, "n", &n)
	var bound []byte
	if hi != "" {
		bound = []byte(hi)
	}
	cur := s.trees[tx.Machine().ID()].Scan(tx, []byte(lo), bound, d.HasArg("reverse"))
	for ; n != 0; n-- {
		key, _, ok, err := cur.Next()
		if err != nil {
			fmt.Fprintln(out, err)
		}
		if !ok {
			out.WriteString("end")
			return
		}
		fmt.Fprintf(out, "%s ", shorten(key))
	}
}

// show prints the node at p and what is below it.
func (s *script) show(t *testing.T, p region.Ptr, indent string, out *strings.Builder) {
	tr := s.trees[0]
	b := make([]byte, p.Capacity())
	if _, err := tr.m.Read(p, b); err != nil {
		t.Fatal(err)
	}
	if p == tr.anchor {
		b = b[anchorHeaderBytes:]
	}
	n := node{b}
	switch {
	case p == tr.anchor:
		fmt.Fprintf(out, "anchor\n")
	case n.level() > 0:
		fmt.Fprintf(out, "%slevel %d [%s,%s) %d/%d\n", indent, n.level(), shorten(n.low()), shorten(n.high()), n.used(), len(b))
	default:
		var keys []string
		for i := range n.count() {
			keys = append(keys, shorten(n.appendKey(nil, i)))
		}
		fmt.Fprintf(out, "%s[%s,%s) %d/%d: %s\n", indent, shorten(n.low()), shorten(n.high()), n.used(), len(b), strings.Join(keys, " "))
		return
	}
	for i := range n.count() {
		child, err := n.ptr(i)
		if err != nil {
			t.Fatal(err)
		}
		s.show(t, child, indent+"  ", out)
	}
}

// shorten writes a run of one letter as the scripts do.
func shorten(key []byte) string {
	if n := len(key); n > 8 && bytes.Count(key, key[:1]) == n {
		return fmt.Sprintf("%c*%d", key[0], n)
	}
	return string(key)
}
