package hash

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{KeyBytes: -1}, {KeyBytes: 256}, {ValueBytes: -1}, {ValueBytes: 4096}, {Neighbourhood: 7}, {Neighbourhood: 66},
		{MaxLoad: 101}, {MaxLoad: -1}, {Buckets: 3}, {Buckets: 100}, {Buckets: 8192}, {Buckets: -4}, {Places: make([]region.Addr, 33)},
		{ValueBytes: 4000, Neighbourhood: 64, Buckets: 64},
	} {
		if _, err := c.layout(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []struct {
		Config
		size, buckets int
	}{
		{Config{}, 192, 256}, {Config{ValueBytes: 32}, 256, 256}, {Config{ValueBytes: 128}, 704, 64},
		{Config{KeyBytes: 1, ValueBytes: 1, Neighbourhood: 2}, 128, 512}, {Config{ValueBytes: 4095, Neighbourhood: 64}, 0, 4},
	} {
		l, err := c.layout()
		if err != nil || c.size != 0 && l.class.Size() != c.size || l.buckets != c.buckets {
			t.Errorf("%+v: %d buckets of %d bytes, %v", c.Config, l.buckets, l.class.Size(), err)
		}
	}
}

// TestEqualKeys: keys of each length that differ in one byte, or in their length, are not
// equal.
func TestEqualKeys(t *testing.T) {
	for n := range 20 {
		a := bytes.Repeat([]byte{'k'}, n)
		if !equalKeys(a, bytes.Clone(a)) {
			t.Errorf("keys of %d bytes: not equal", n)
		}
		if equalKeys(a, append(bytes.Clone(a), 'k')) || equalKeys(append(bytes.Clone(a), 'k'), a) {
			t.Errorf("keys of %d and %d bytes: equal", n, n+1)
		}
		for i := range a {
			b := bytes.Clone(a)
			b[i] ^= 1
			if equalKeys(a, b) {
				t.Errorf("keys of %d bytes that differ in byte %d: equal", n, i)
			}
		}
	}
}

// For keys of many kinds, each part of the hash is spread evenly.
func TestSumSpreads(t *testing.T) {
	const n = 1 << 16
	for name, key := range map[string]func(i int) []byte{
		"decimal": testKey,
		"little":  func(i int) []byte { return []byte{byte(i), byte(i >> 8), byte(i >> 16)} },
		"four":    func(i int) []byte { return []byte{byte(i), byte(i >> 8), 0, 0} },
		"counter": func(i int) []byte { return []byte{0, 0, 0, 0, 0, byte(i >> 16), byte(i >> 8), byte(i)} },
		"sixteen": func(i int) []byte { return append(make([]byte, 13), byte(i>>16), byte(i>>8), byte(i)) },
		"long": func(i int) []byte {
			return append(append(make([]byte, 20), byte(i>>16), byte(i>>8), byte(i)), make([]byte, 20)...)
		},
		"zeros": func(i int) []byte { return make([]byte, i%3000) },
	} {
		var prefix, tag, bucket [256]int
		seen := map[uint64]bool{}
		for i := range n {
			h := sum(1, key(i))
			if name == "zeros" && i < 3000 || name != "zeros" {
				if seen[h] {
					t.Fatalf("%s: collision at %d", name, i)
				}
				seen[h] = true
			}
			prefix[h>>56]++
			tag[tagOf(h)]++
			bucket[bucketOf(h, 256)]++
		}
		if name == "zeros" {
			continue
		}
		for part, counts := range map[string][256]int{"prefix": prefix, "tag": tag, "bucket": bucket} {
			chi := 0.0
			for _, c := range counts {
				d := float64(c) - n/256
				chi += d * d / (n / 256)
			}
			// 255 degrees of freedom: standard deviation 22.6.
			if math.Abs(chi-255) > 6*22.6 {
				t.Errorf("%s: %s: chi square %.0f", name, part, chi)
			}
		}
	}
	if sum(1, []byte("a")) == sum(2, []byte("a")) {
		t.Error("the seed does not matter")
	}
}

// The hash is part of the format.
func TestSumIsFixed(t *testing.T) {
	var got [6]uint64
	for i, n := range []int{0, 3, 4, 8, 16, 100} {
		got[i] = sum(42, []byte(strings.Repeat("x", n)))
	}
	want := [6]uint64{0x6b7f8de6747b3b8f, 0x8a8619f652e5a669, 0x3f8c8198ad2a9a05, 0xc316b417de29767e, 0x7bff35c4f001d72c, 0x60351cfdf4116c39}
	if got != want {
		t.Errorf("%#x", got)
	}
}

func FuzzPage(f *testing.F) {
	lay := testLayout(f, Config{ValueBytes: 32})
	p := lay.bucket(make([]byte, lay.class.Capacity()))
	p.setDepth(3)
	p.set(0, inlineSlot(sum(0, []byte("key")), []byte("key"), []byte("value"), nil), false)
	p.set(1, outsideSlot(sum(0, []byte("other")), region.MakePtr(region.MakeAddr(1, 64), 3, 5), nil), true)
	p.setLink(link{region.MakePtr(region.MakeAddr(1, 128), 3, 5), 7})
	f.Add(p.b)
	f.Add(make([]byte, 300))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range []page{lay.bucket(b), lay.block(b)} {
			if p.valid() != nil {
				continue
			}
			again := page{make([]byte, len(b)), p.lay, p.slots}
			for i := range p.slots {
				s := p.slot(i)
				if !s.used() {
					continue
				}
				s.hash(0)
				key := s.key()
				if s.outside() {
					if _, _, err := s.pair(); err != nil {
						t.Fatal(err)
					}
				} else if uint32(tagOf(sum(0, key))) == s.control&0xff && p.find(0, sum(0, key), key, s.next()) < 0 {
					t.Fatalf("%q is there and not found", key)
				}
				again.set(i, s, s.next())
				if again.control(i) != s.control || !bytes.Equal(again.data(i), s.data) {
					t.Fatal("a slot is not what was set")
				}
			}
			l, err := p.link()
			if err != nil {
				t.Fatal(err)
			}
			again.setLink(l)
			if got, err := again.link(); got != l || err != nil {
				t.Fatal(got, err)
			}
		}
		// A search does not panic on a page that is not valid either.
		if len(b) >= lay.bucketBytes() {
			lay.bucket(b).find(0, 77, []byte("key"), false)
		}
	})
}

func FuzzPair(f *testing.F) {
	b := make([]byte, 20)
	encodePair(b, []byte("key"), []byte("value"))
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		key, value, err := decodePair(b)
		if err != nil {
			return
		}
		again := make([]byte, pairBytes(len(key), len(value)))
		encodePair(again, key, value)
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("%x: %x", b, again)
		}
	})
}

func FuzzHeader(f *testing.F) {
	lay := testLayout(f, Config{})
	c, _ := region.ClassFor(headerBytes)
	h := header{initialDepth: 2, depth: 4, state: splitting, cursor: 9, prefix: 3 << 62}
	for i := h.initialDepth; i < h.childrenEnd(); i++ {
		h.children[i] = shardPtr{region.MakePtr(region.MakeAddr(1, 64), c, 1), region.MakePtr(region.MakeAddr(1, 128), lay.class, 2)}
	}
	b := make([]byte, headerBytes)
	h.encode(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := decodeHeader(b, lay)
		if err != nil {
			return
		}
		again := make([]byte, headerBytes)
		h.encode(again)
		h2, err := decodeHeader(again, lay)
		if err != nil || *h2 != *h {
			t.Fatalf("%+v: %+v, %v", h, h2, err)
		}
	})
}

func FuzzAnchor(f *testing.F) {
	lay := testLayout(f, Config{})
	c, _ := region.ClassFor(headerBytes)
	a := anchor{layout: *lay, seed: 5, places: []region.Addr{1, 2}}
	a.root = shardPtr{region.MakePtr(region.MakeAddr(1, 64), c, 1), region.MakePtr(region.MakeAddr(1, 128), lay.class, 2)}
	b := make([]byte, anchorBytes)
	a.encode(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAnchor(b)
		if err != nil {
			return
		}
		again := make([]byte, anchorBytes)
		a.encode(again)
		a2, err := decodeAnchor(again)
		if err != nil || a2.layout != a.layout || a2.root != a.root || a2.seed != a.seed {
			t.Fatalf("%+v: %+v, %v", a, a2, err)
		}
	})
}

// Decoders report each kind of invalid anchor, header and page.
func TestDecodersRefuse(t *testing.T) {
	lay := testLayout(t, Config{})
	c, _ := region.ClassFor(headerBytes)
	good := shardPtr{region.MakePtr(region.MakeAddr(1, 64), c, 1), region.MakePtr(region.MakeAddr(1, 128), lay.class, 2)}
	spoil := func(name string, n int, encode func([]byte), decode func([]byte) error, bad map[int]byte) {
		b := make([]byte, n)
		encode(b)
		if err := decode(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := decode(b[:len(b)-1]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s too short: %v", name, err)
		}
		for off, v := range bad {
			encode(b)
			b[off] = v
			if err := decode(b); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s with %d at %d: %v", name, v, off, err)
			}
		}
	}
	spoil("anchor", anchorBytes,
		func(b []byte) { clear(b); (&anchor{layout: *lay, root: good}).encode(b) },
		func(b []byte) error { _, err := decodeAnchor(b); return err },
		map[int]byte{0: 0, 4: 2, 5: 0, 6: 0, 8: 1, 9: 0, 10: 0, 11: 0, 12: 33, anchorRoot: 1, anchorRoot + 8: 0, anchorRoot + 16: 1, anchorRoot + 24: 9})
	spoil("header", headerBytes,
		func(b []byte) {
			h := header{initialDepth: 1, depth: 3, state: splitting, prefix: 1 << 63}
			h.children[1], h.children[2], h.children[3] = good, good, good
			h.encode(b)
		},
		func(b []byte) error { _, err := decodeHeader(b, lay); return err },
		map[int]byte{0: 0, 2: 4, 3: 41, 4: 0, 7: 9, 8: 1, headerChildren + 32: 1, headerChildren + 64 + 16: 3})
	spoil("page", lay.bucketBytes(),
		func(b []byte) {
			clear(b)
			p := lay.bucket(b)
			p.set(0, inlineSlot(1, []byte("key"), []byte("value"), nil), false)
			p.set(1, outsideSlot(1, good.header, nil), false)
		},
		func(b []byte) error { return lay.bucket(b).valid() },
		map[int]byte{0: 1, depthOffset: 42, 25: 200, 27: 0x80, 28 + 1: 1, 40 + 32 + 8: 1})
}

// Keys and values that are too long are refused before anything changes.
func TestTooLong(t *testing.T) {
	tb := newTable(t, Config{})
	tx := tb.m.Begin()
	defer tx.Abort()
	longKey, longValue := make([]byte, KeyBytesMax+1), make([]byte, region.MaxPayload)
	if err := tb.Put(tx, longKey, nil); !errors.Is(err, ErrKeyTooLong) {
		t.Error(err)
	}
	if err := tb.Insert(tx, []byte("k"), longValue); !errors.Is(err, ErrValueTooLong) {
		t.Error(err)
	}
	if _, err := tb.Delete(tx, longKey); !errors.Is(err, ErrKeyTooLong) {
		t.Error(err)
	}
	if err := tb.PutNow(ctx, longKey, nil); !errors.Is(err, ErrKeyTooLong) {
		t.Error(err)
	}
	if _, ok, err := tb.Lookup(longKey, nil); ok || err != nil {
		t.Error(ok, err)
	}
	if err := tb.Insert(tx, longKey[:KeyBytesMax], nil); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	if v, ok, err := tb.Lookup(longKey[:KeyBytesMax], nil); !ok || err != nil || len(v) != 0 {
		t.Error(v, ok, err)
	}
	if err := tb.Reserve(ctx, math.MaxInt); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

// Check finds each kind of violation in a table.
func TestCheckFinds(t *testing.T) {
	spoilBucket := func(change func(o *opened, p page, i int) bool) func(tb *Table, o *opened, tx *txn.Tx) error {
		return func(tb *Table, o *opened, tx *txn.Tx) error {
			for i := range o.buckets {
				b, err := tx.Write(o.root.first.Element(i))
				if err != nil {
					return err
				}
				if change(o, o.bucket(b), i) {
					return nil
				}
			}
			return errors.New("no bucket to spoil")
		}
	}
	spoilHeader := func(change func(h *header)) func(tb *Table, o *opened, tx *txn.Tx) error {
		return func(tb *Table, o *opened, tx *txn.Tx) error {
			b, err := tx.Write(o.root.header)
			if err != nil {
				return err
			}
			h, err := decodeHeader(b, &o.layout)
			if err != nil {
				return err
			}
			change(h)
			h.encode(b)
			return nil
		}
	}
	spoilBlock := func(change func(p page)) func(tb *Table, o *opened, tx *txn.Tx) error {
		return spoilBucketTx(change)
	}
	for name, spoil := range map[string]func(tb *Table, o *opened, tx *txn.Tx) error{
		"joint version": spoilBucket(func(_ *opened, p page, _ int) bool { p.b[forwardVersion]++; return true }),
		"depth":         spoilBucket(func(_ *opened, p page, _ int) bool { p.setDepth(1); return true }),
		"not in use":    spoilBucket(func(_ *opened, p page, _ int) bool { p.b[depthOffset] = 0; return true }),
		"control word":  spoilBucket(func(_ *opened, p page, _ int) bool { p.b[24+3] |= 0x80; return true }),
		"tag":           spoilBucket(func(_ *opened, p page, _ int) bool { p.b[24]++; return p.control(0) != 1 }),
		"wrong home": spoilBucket(func(o *opened, p page, i int) bool {
			if p.usedSlots() == 0 {
				return false
			}
			k, _ := p.resident(false)
			p.data(k)[0] ^= 0xff
			return true
		}),
		"twice": spoilBucket(func(o *opened, p page, i int) bool {
			p.set(0, p.slot(1), p.slot(1).next())
			return true
		}),
		"chain version": spoilBlock(func(p page) { p.setU16(chainVersion, p.u16(chainVersion)+1) }),
		"endless chain": spoilBlock(func(p page) { p.setLink(link{region.MakePtr(64, 0, 0), 0}) }),
		"empty block": spoilBlock(func(p page) {
			for i := range p.slots {
				p.clear(i)
			}
		}),
		"prefix": spoilHeader(func(h *header) { h.prefix, h.initialDepth, h.depth = 1<<63, 1, 1 }),
		"doomed": spoilHeader(func(h *header) { h.state = destroying }),
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable(t, Config{Buckets: 4, MaxLoad: 100, Neighbourhood: 4, KeyBytes: 8})
			mustRun(t, tb.m, func(tx *txn.Tx) error {
				for i := range 40 {
					if err := tb.Put(tx, testKey(i), []byte("v")); err != nil {
						return err
					}
				}
				return nil
			})
			o := mustOpen(t, tb)
			checkTable(t, tb)
			if o.dir.size() != 1 {
				t.Fatal("the table has split")
			}
			mustRun(t, tb.m, func(tx *txn.Tx) error { return spoil(tb, o, tx) })
			err := tb.Check(ctx, Visitor{})
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, errOvertaken) && !errors.Is(err, region.ErrBadPtr) && !errors.Is(err, outcome.ErrNoRegion) {
				t.Errorf("check: %v", err)
			}
			useSpoilt(t, tb)
		})
	}
}

// useSpoilt reads an invalid table in all ways that there are. Each of them must end, with an answer
// or an error.
func useSpoilt(t *testing.T, tb *Table) {
	failed := 0
	note := func(err error) {
		if err != nil {
			failed++
		}
	}
	tx := tb.m.Begin()
	defer tx.Abort()
	for i := range 40 {
		_, _, err := tb.Lookup(testKey(i), nil)
		note(err)
		_, _, err = tb.Get(tx, testKey(i))
		note(err)
	}
	for c := tb.Scan(tx); ; {
		_, _, ok, err := c.Next()
		note(err)
		if !ok {
			break
		}
	}
	o := mustOpen(t, tb)
	_, err := tb.full(o, o.first())
	note(err)
	t.Logf("%d of 82 operations failed", failed)
}

// spoilBucketTx changes the first block of the first chain.
func spoilBucketTx(change func(p page)) func(tb *Table, o *opened, tx *txn.Tx) error {
	return func(tb *Table, o *opened, tx *txn.Tx) error {
		for i := range o.buckets {
			b, err := tx.Read(o.root.first.Element(i))
			if err != nil {
				return err
			}
			l, err := o.bucket(b).link()
			if err != nil || l.ptr.IsNil() {
				continue
			}
			if b, err = tx.Write(l.ptr); err != nil {
				return err
			}
			change(o.block(b))
			return nil
		}
		return errors.New("no chain to spoil")
	}
}
