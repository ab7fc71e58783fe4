package hash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// pages is a store over a map. It stands for a transaction that never conflicts.
type pages struct {
	objects map[region.Addr]object
	next    region.Addr
	// frees counts the incarnations.
	frees uint64
	// fail makes the operation fail at which this countdown reaches its end.
	fail int
}

type object struct {
	ptr     region.Ptr
	payload []byte
}

var errInjected = errors.New("injected")

func newPages() *pages {
	return &pages{objects: map[region.Addr]object{}, next: region.MakeAddr(1, 1<<20), fail: -1}
}

func (s *pages) get(p region.Ptr) ([]byte, error) {
	if s.fail--; s.fail == 0 {
		return nil, errInjected
	}
	o, ok := s.objects[p.Addr]
	if !ok || o.ptr != p {
		return nil, region.ErrFreed
	}
	return o.payload, nil
}

func (s *pages) Read(p region.Ptr) ([]byte, error) {
	b, err := s.get(p)
	return bytes.Clone(b), err // what Write changes later must not show
}

func (s *pages) Write(p region.Ptr) ([]byte, error) { return s.get(p) }

func (s *pages) Alloc(payload int, _ region.Addr) (region.Ptr, []byte, error) {
	if s.fail--; s.fail == 0 {
		return region.Ptr{}, nil, errInjected
	}
	c, _ := region.ClassFor(payload)
	p := region.MakePtr(s.next, c, s.frees)
	s.next += region.Addr(c.Size())
	b := make([]byte, c.Capacity())
	s.objects[p.Addr] = object{p, b}
	return p, b, nil
}

func (s *pages) Free(p region.Ptr) error {
	if _, err := s.get(p); err != nil {
		return err
	}
	s.frees++
	delete(s.objects, p.Addr)
	return nil
}

// array makes an empty shard.
func (s *pages) array(t testing.TB, lay *layout) region.Ptr {
	var first region.Ptr
	for i := range lay.buckets + 1 {
		p, b, err := s.Alloc(lay.bucketBytes(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = p
		}
		if want := first.Element(i).Addr; p.Addr != want {
			t.Fatalf("element %d at %v, not %v", i, p.Addr, want)
		}
		if i < lay.buckets {
			lay.bucket(b).setDepth(0)
		}
		s.objects[p.Addr] = object{first.Element(i), b}
	}
	return first
}

func testLayout(t testing.TB, c Config) *layout {
	t.Helper()
	lay, err := c.layout()
	if err != nil {
		t.Fatal(err)
	}
	return &lay
}

func testKey(i int) []byte { return fmt.Appendf(nil, "key%d", i) }

// contents walks the shard without the editor's help, checks all of it, and returns its pairs.
func (e *editor) contents(t testing.TB) map[string]string {
	t.Helper()
	got := map[string]string{}
	add := func(s slot, home int) {
		key, value := s.key(), s.value()
		if s.outside() {
			var err error
			if key, value, err = e.pair(s); err != nil {
				t.Fatal(err)
			}
		}
		if h := sum(e.seed, key); bucketOf(h, e.lay.buckets) != home || s.control&0xff != tagOf(h) || s.hash(e.seed) != h {
			t.Fatalf("key %q is in the wrong place", key)
		}
		if _, ok := got[string(key)]; ok {
			t.Fatalf("key %q twice", key)
		}
		got[string(key)] = string(value)
	}
	var prev page
	for i := range e.lay.buckets + 1 {
		p, err := e.bucket(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.valid(); err != nil {
			t.Fatal(err)
		}
		if i > 0 && !joint(prev, p) {
			t.Fatalf("buckets %d and %d: joint versions differ", i-1, i)
		}
		prev = p
		for k := range p.slots {
			if s := p.slot(k); s.used() {
				home := i
				if s.next() {
					home--
				}
				add(s, home)
			}
		}
		if i == e.lay.buckets {
			break
		}
		n, err := e.neighbourhood(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.rest(); err != nil {
			t.Fatal(err)
		}
		for b, p := range n.pages[2:] {
			if err := p.valid(); err != nil {
				t.Fatal(err)
			}
			if p.usedSlots() == 0 || b+3 < len(n.pages) && p.usedSlots() != blockSlots {
				t.Fatalf("bucket %d: block %d of %d holds %d pairs", i, b, len(n.pages)-2, p.usedSlots())
			}
			for k := range p.slots {
				if s := p.slot(k); s.used() {
					add(s, i)
				}
			}
		}
	}
	return got
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d pairs, want %d", len(got), len(want))
	}
	for k, v := range want {
		if got[k] != v {
			t.Fatalf("%q: %q, want %q", k, got[k], v)
		}
	}
}

// Random puts and removals, of inline and outside pairs, give the same results as on a map, and leave
// no object behind.
func TestEditor(t *testing.T) {
	for _, cfg := range []Config{
		{Buckets: 4}, {Buckets: 16, Neighbourhood: 2}, {Buckets: 16, Neighbourhood: 6, KeyBytes: 4, ValueBytes: 1}, {Buckets: 64, ValueBytes: 32},
	} {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			lay := testLayout(t, cfg)
			st := newPages()
			e := &editor{st: st, lay: lay, seed: 7, first: st.array(t, lay)}
			want := map[string]string{}
			keys := lay.buckets * lay.slots * 3 / 2
			for step := range 20000 / scale {
				key := testKey(rnd.IntN(keys))
				if rnd.IntN(20) == 0 {
					key = append(key, bytes.Repeat([]byte("x"), 30)...)
				}
				h := sum(e.seed, key)
				_, had := want[string(key)]
				if rnd.IntN(100) < 40+step/1000%2*20 {
					value := bytes.Repeat([]byte{byte(step)}, rnd.IntN(2*lay.valueBytes))
					added, err := e.put(h, key, value)
					if err != nil || added == had {
						t.Fatalf("step %d: put %q: added %v, err %v; was there %v", step, key, added, err, had)
					}
					want[string(key)] = string(value)
				} else {
					removed, err := e.remove(h, key)
					if err != nil || removed != had {
						t.Fatalf("step %d: remove %q: %v, %v, want %v", step, key, removed, err, had)
					}
					delete(want, string(key))
				}
				if err := e.seal(); err != nil {
					t.Fatal(err)
				}
				if step%500 == 0 {
					same(t, e.contents(t), want)
				}
			}
			for key := range want {
				if ok, err := e.remove(sum(e.seed, []byte(key)), []byte(key)); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			if err := e.seal(); err != nil {
				t.Fatal(err)
			}
			if len(st.objects) != lay.buckets+1 {
				t.Fatalf("%d objects left, %d buckets", len(st.objects), lay.buckets+1)
			}
		})
	}
}

// Every change that fails half way returns the store's error.
func TestEditorFails(t *testing.T) {
	lay := testLayout(t, Config{Buckets: 4, Neighbourhood: 2})
	for fail := 1; ; fail++ {
		st := newPages()
		e := &editor{st: st, lay: lay, first: st.array(t, lay)}
		for i := range 30 {
			if _, err := e.put(sum(0, testKey(i)), testKey(i), bytes.Repeat([]byte("v"), i)); err != nil {
				t.Fatal(err)
			}
		}
		st.fail = fail
		err := func() error {
			for i := range 30 {
				key := testKey(i)
				if _, err := e.put(sum(0, key), key, []byte("other")); err != nil {
					return err
				}
				if _, err := e.remove(sum(0, key), key); err != nil {
					return err
				}
				if _, err := e.put(sum(0, key), key, bytes.Repeat([]byte("w"), 40)); err != nil {
					return err
				}
			}
			if _, err := e.take(1, func(h uint64) bool { return h&(1<<40) != 0 }); err != nil {
				return err
			}
			for {
				if done, err := e.free(2, 1, func(slot) error { return nil }); done || err != nil {
					break
				}
			}
			return e.seal()
		}()
		if st.fail > 0 {
			if fail < 100 {
				t.Fatal("nothing failed")
			}
			return
		}
		if err != nil && !errors.Is(err, errInjected) {
			t.Fatalf("failure %d: %v", fail, err)
		}
	}
}

// A split's take moves exactly the pairs of the other half, and add puts them in.
func TestTake(t *testing.T) {
	for _, items := range []int{0, 10, 200, 1000} {
		lay := testLayout(t, Config{Buckets: 32})
		st := newPages()
		old := &editor{st: st, lay: lay, first: st.array(t, lay)}
		young := &editor{st: st, lay: lay, first: st.array(t, lay)}
		stay, gone := map[string]string{}, map[string]string{}
		for i := range items {
			key, value := testKey(i), bytes.Repeat([]byte("v"), i%20)
			h := sum(0, key)
			if _, err := old.put(h, key, value); err != nil {
				t.Fatal(err)
			}
			if bitOf(h, 0) == 0 {
				stay[string(key)] = string(value)
			} else {
				gone[string(key)] = string(value)
			}
		}
		for home := range lay.buckets {
			pairs, err := old.take(home, func(h uint64) bool { return bitOf(h, 0) == 1 })
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range pairs {
				if err := young.add(home, s); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(old.seal(), young.seal()); err != nil {
			t.Fatal(err)
		}
		same(t, old.contents(t), stay)
		same(t, young.contents(t), gone)
	}
}

// A reader that follows the protocol finds every key that is in the table all the time, even if
// single changes are made between any two of its reads. That is the purpose of joint and chain
// versions.
func TestOvertakenReader(t *testing.T) {
	t.Run("chains", func(t *testing.T) { overtakeReader(t, Config{Buckets: 4, Neighbourhood: 2}, 24) })
	t.Run("displacement", func(t *testing.T) { overtakeReader(t, Config{Buckets: 16, Neighbourhood: 2}, 16) })
	t.Run("both", func(t *testing.T) { overtakeReader(t, Config{Buckets: 8, Neighbourhood: 4}, 20) })
}

func overtakeReader(t *testing.T, cfg Config, keys int) {
	rnd := rand.New(rand.NewPCG(3, 4))
	lay := testLayout(t, cfg)
	st := newPages()
	e := &editor{st: st, lay: lay, first: st.array(t, lay)}
	in := map[int]bool{}
	change := func(not int) {
		for {
			if i := rnd.IntN(keys); i != not {
				key := testKey(i)
				var err error
				if in[i] {
					_, err = e.remove(sum(0, key), key)
				} else {
					_, err = e.put(sum(0, key), key, []byte{byte(i)})
				}
				if err = errors.Join(err, e.seal()); err != nil {
					t.Fatal(err)
				}
				in[i] = !in[i]
				return
			}
		}
	}
	restarts := 0
	for range 20000 / scale {
		i := rnd.IntN(keys)
		key := testKey(i)
		h := sum(0, key)
		if !in[i] {
			if _, err := e.put(h, key, []byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			if err := e.seal(); err != nil {
				t.Fatal(err)
			}
			in[i] = true
		}
		found := false
		for try := 0; !found; try++ {
			read := func(p region.Ptr) ([]byte, error) {
				if try < 3 && rnd.IntN(3) == 0 {
					change(i)
				}
				return st.Read(p)
			}
			home := bucketOf(h, lay.buckets)
			a, _ := read(e.first.Element(home))
			b, _ := read(e.first.Element(home + 1))
			if !joint(lay.bucket(a), lay.bucket(b)) {
				restarts++
				continue
			}
			found = lay.bucket(a).find(0, h, key, false) >= 0 || lay.bucket(b).find(0, h, key, true) >= 0
			l, _ := lay.bucket(a).link()
			overtaken := false
			for !found && !l.ptr.IsNil() {
				b, err := read(l.ptr)
				if err != nil || lay.block(b).u16(chainVersion) != l.version {
					overtaken = true
					break
				}
				found = lay.block(b).find(0, h, key, false) >= 0
				l, _ = lay.block(b).link()
			}
			if overtaken {
				restarts++
				continue
			}
			if !found {
				t.Fatalf("key %d was there all the time and not found", i)
			}
		}
	}
	if restarts == 0 {
		t.Fatal("no reader was overtaken: the test shows nothing")
	}
}

// The moves of a displacement are legal and free the slot they promise.
func TestDisplacement(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	lay := testLayout(t, Config{Buckets: 32, Neighbourhood: 4})
	var ahead, behind, none int
	for range 5000 {
		b := make([]page, lay.buckets+1)
		for i := range b {
			b[i] = lay.bucket(make([]byte, lay.bucketBytes()))
			for k := range lay.slots {
				if rnd.IntN(20) != 0 {
					data := make([]byte, lay.dataBytes)
					binary.LittleEndian.PutUint64(data, rnd.Uint64())
					b[i].set(k, slot{usedFlag, data}, i > 0 && (i == lay.buckets || rnd.IntN(2) == 0))
				}
			}
		}
		home := rnd.IntN(lay.buckets)
		if b[home].usedSlots() < lay.slots || b[home+1].usedSlots() < lay.slots {
			continue
		}
		read := func(i int) (page, error) { return b[i], nil }
		moves, err := planHole(read, home, lay.buckets, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) == 0 {
			none++
			continue
		}
		for _, m := range moves {
			to := m.at + 1
			if m.back {
				to = m.at - 1
			}
			s := b[m.at].slot(m.from)
			if !s.used() || s.next() != m.back || b[to].control(m.to) != 0 {
				t.Fatalf("move %+v is not legal", m)
			}
			b[to].set(m.to, s, !m.back)
			b[m.at].clear(m.from)
		}
		m := moves[len(moves)-1]
		if _, ok := b[m.at].free(); !ok || m.at != home && m.at != home+1 {
			t.Fatalf("no slot freed near %d by %+v", home, moves)
		}
		if m.back {
			behind++
		} else {
			ahead++
		}
	}
	if ahead == 0 || behind == 0 || none == 0 {
		t.Fatalf("%d ahead, %d behind, %d without a plan: a case is missing", ahead, behind, none)
	}
}

// TestOverlaysKeepNothing: an overlay that a transaction returns to the pool refers neither to the
// transaction's pages nor to its store, however many shards and chains the transaction has changed.
func TestOverlaysKeepNothing(t *testing.T) {
	c := openFarm(t, 1, 1)
	m := c.Machine(0)
	tb := Open(m, createTable(t, m, Config{Neighbourhood: 2, Buckets: 4}))
	put := func(tx *txn.Tx, key []byte) error { return tb.Put(tx, key, key) }
	remove := func(tx *txn.Tx, key []byte) error { _, err := tb.Delete(tx, key); return err }
	for _, op := range []func(tx *txn.Tx, key []byte) error{put, remove, put, remove} {
		var ov *overlay
		kept, used := 0, 0
		err := m.Run(ctx, func(tx *txn.Tx) error {
			for i := range 60 {
				if err := op(tx, testKey(i)); err != nil {
					return err
				}
			}
			ov = tx.Local(tb).(*overlay)
			tx.OnEnd(func() { kept, used = cap(ov.editors), len(ov.editors) }) // after the overlay's own end
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if kept == 0 || kept > editorsMax || used != 0 {
			t.Fatalf("%d editors are kept, %d of them in use", kept, used)
		}
		for _, ed := range ov.editors[:kept] {
			if ed != nil && (ed.st != nil || ed.shard != nil || ed.lay != nil || keepsPages(ed)) {
				t.Error("an editor keeps its store, its shard or pages")
			}
		}
	}
}

func keepsPages(e *editor) bool {
	for i := range e.neighbourhoods {
		pages := e.neighbourhoods[i].pages
		for _, p := range pages[:cap(pages)] {
			if p.b != nil || p.lay != nil {
				return true
			}
		}
	}
	return false
}
