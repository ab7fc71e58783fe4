package tatp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/txn"
)

// loaded returns TATP with a few subscribers on a small target.
func loaded(t *testing.T, cfg bench.TargetConfig, subscribers int) *Workload {
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
	w, err := New(target, Config{Subscribers: subscribers, Seed: 42})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs transactions, and compares the number of misses with that expected from the loaded data.
// They differ a little, since the choice among few subscribers is uneven.
func run(t *testing.T, w *Workload, threads, each int, tolerance float64) {
	t.Helper()
	res, err := bench.Run(t.Context(), w.target, w, bench.Options{Threads: threads, Transactions: each, Seed: 7, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range res.Kinds {
		if part := float64(k.Count) / float64(res.Total.Count); math.Abs(part-float64(share[i])/100) > 0.05 {
			t.Errorf("%s: %.3f of the transactions, want %d %%", k.Name, part, share[i])
		}
		if foreseen := 1 - succeeds[i]; math.Abs(k.MissedPart-foreseen) > tolerance {
			t.Errorf("%s: %.3f of %d missed, want %.3f", k.Name, k.MissedPart, k.Count, foreseen)
		}
	}
	for _, k := range []kind{insertCallForwarding, deleteCallForwarding} {
		if res.Kinds[k].MissedPart == 1 {
			t.Errorf("nothing done by %s", kindNames[k])
		}
	}
}

func TestNative(t *testing.T) {
	run(t, loaded(t, bench.TargetConfig{}, 2000), 1, 10_000, 0.15)
}

// On several machines locations are updated where the subscriber is.
func TestNativeOnThreeMachines(t *testing.T) {
	w := loaded(t, bench.TargetConfig{Machines: 3, Replicas: 2}, 500)
	before := w.target.Machine(0).Stats().Messages
	run(t, w, 1, 1000, 0.3)
	if w.target.Machine(0).Stats().Messages == before {
		t.Error("nothing was shipped")
	}
}

func TestSQL(t *testing.T) {
	run(t, loaded(t, bench.TargetConfig{API: bench.SQL}, 200), 2, 400, 0.45)
}

func TestDrop(t *testing.T) {
	w := loaded(t, bench.TargetConfig{API: bench.SQL}, 10)
	if err := w.Load(t.Context(), nil); err == nil {
		t.Error("loaded into a database that is there")
	}
	w.cfg.Drop = true
	if err := errors.Join(w.Load(t.Context(), nil), w.Check(t.Context())); err != nil {
		t.Error(err)
	}
}

// Each way to break the data of hash tables is caught.
func TestCheckCatchesNative(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, 100)
	tb := &w.store.(*nativeStore).tables[0]
	p := newGenerator(42).person(7)
	var k key
	number := numberOf(7)
	facilityKey := append([]byte(nil), k.kind(7, p.facilities[0].kind)...)
	nobody := append([]byte(nil), k.id(101)...)
	forward := func(id uint32, kind, start, end uint8) func(*txn.Tx) error {
		w := forward{start: start, end: end, number: number}
		return func(t *txn.Tx) error { return tb.forwards.Put(t, k.forward(id, kind, start), w.encode(nil)) }
	}
	noFacility := uint8(1)
	for p.find(noFacility) != nil {
		noFacility++
	}
	for name, change := range map[string]func(t *txn.Tx) error{
		"subscriber gone":     func(t *txn.Tx) error { _, err := tb.subscribers.Delete(t, k.id(7)); return err },
		"subscriber too many": func(t *txn.Tx) error { return tb.subscribers.Put(t, nobody, p.subscriber.encode(nil)) },
		"subscriber changed": func(t *txn.Tx) error {
			s := p.subscriber
			s.msc++
			return tb.subscribers.Put(t, k.id(7), s.encode(nil))
		},
		"no location": func(t *txn.Tx) error {
			s := p.subscriber
			s.vlr = 0
			return tb.subscribers.Put(t, k.id(7), s.encode(nil))
		},
		"number gone":        func(t *txn.Tx) error { _, err := tb.numbers.Delete(t, number[:]); return err },
		"number of another":  func(t *txn.Tx) error { return tb.numbers.Put(t, number[:], k.id(8)) },
		"number of nobody":   func(t *txn.Tx) error { return tb.numbers.Put(t, number[:], nobody) },
		"access gone":        func(t *txn.Tx) error { _, err := tb.access.Delete(t, k.kind(7, p.access[0].kind)); return err },
		"access changed":     func(t *txn.Tx) error { return tb.access.Put(t, k.kind(7, p.access[0].kind), make([]byte, accessBytes)) },
		"access of nobody":   func(t *txn.Tx) error { return tb.access.Put(t, k.kind(0, 1), p.access[0].encode(nil)) },
		"access of no kind":  func(t *txn.Tx) error { return tb.access.Put(t, k.kind(7, 9), p.access[0].encode(nil)) },
		"facility gone":      func(t *txn.Tx) error { _, err := tb.facilities.Delete(t, facilityKey); return err },
		"facility changed":   func(t *txn.Tx) error { return tb.facilities.Put(t, facilityKey, make([]byte, facilityBytes)) },
		"facility of nobody": func(t *txn.Tx) error { return tb.facilities.Put(t, nobody, make([]byte, facilityBytes)) },
		"forward too many":   forward(7, p.facilities[0].kind, 8, 9),
		"forward of nothing": forward(7, noFacility, 8, 9),
		"forward of nobody":  forward(101, 1, 8, 9),
		"forward at no time": forward(7, p.facilities[0].kind, 9, 10),
		"forward for ever":   forward(7, p.facilities[0].kind, 16, 99),
		"forward to nobody": func(t *txn.Tx) error {
			return tb.forwards.Put(t, k.forward(7, p.facilities[0].kind, 8), make([]byte, forwardBytes))
		},
	} {
		w := loaded(t, bench.TargetConfig{}, 100)
		tb = &w.store.(*nativeStore).tables[0]
		if name == "forward too many" {
			mustCount(t, w, -len(p.facilities[0].forwards)) // so that the count is wrong whether or not one was there
		}
		if err := w.target.Machine(0).Run(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if err := w.Check(t.Context()); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The same for SQL's tables.
func TestCheckCatchesSQL(t *testing.T) {
	w := loaded(t, bench.TargetConfig{API: bench.SQL}, 30)
	ctx := t.Context()
	conn, err := w.target.SQL().Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("SET FOREIGN_KEY_CHECKS = 0")
	for _, c := range []struct{ change, undo string }{
		{"UPDATE tatp.subscriber SET sub_nbr = '7' WHERE s_id = 7", "UPDATE tatp.subscriber SET sub_nbr = '000000000000007' WHERE s_id = 7"},
		{"UPDATE tatp.subscriber SET s_id = 70 WHERE s_id = 7", "UPDATE tatp.subscriber SET s_id = 7 WHERE s_id = 70"},
		{"UPDATE tatp.subscriber SET vlr_location = 0 WHERE s_id = 7", "UPDATE tatp.subscriber SET vlr_location = 1 WHERE s_id = 7"},
		{"UPDATE tatp.access_info SET data1 = data1 + 1", "UPDATE tatp.access_info SET data1 = data1 - 1"},
		{"INSERT INTO tatp.access_info VALUES (70, 1, 0, 0, 'abc', 'abcde')", "DELETE FROM tatp.access_info WHERE s_id = 70"},
		{"UPDATE tatp.special_facility SET error_cntrl = error_cntrl + 1", "UPDATE tatp.special_facility SET error_cntrl = error_cntrl - 1"},
		{"UPDATE tatp.special_facility SET data_a = data_a + 1000", "UPDATE tatp.special_facility SET data_a = data_a - 1000"},
		{"UPDATE tatp.special_facility SET is_active = is_active + 1", "UPDATE tatp.special_facility SET is_active = is_active - 1"},
		{"UPDATE tatp.call_forwarding SET s_id = s_id + 1000", "UPDATE tatp.call_forwarding SET s_id = s_id - 1000"},
		{"UPDATE tatp.call_forwarding SET end_time = end_time + 50", "UPDATE tatp.call_forwarding SET end_time = end_time - 50"},
		{"INSERT INTO tatp.call_forwarding VALUES (70, 1, 0, 1, '')", "DELETE FROM tatp.call_forwarding WHERE s_id = 70"},
		{"DROP TABLE tatp.call_forwarding", ""},
	} {
		exec(c.change)
		err := w.Check(ctx)
		if err == nil || errors.Is(err, bench.ErrInconsistent) != (c.undo != "") {
			t.Errorf("%s: %v", c.change, err)
		}
		if c.undo == "" {
			continue
		}
		exec(c.undo)
		if err := w.Check(ctx); err != nil {
			t.Fatalf("undone: %v", err)
		}
	}
}

// A transaction that misses a row that must exist ends the run.
func TestRowsGone(t *testing.T) {
	w := loaded(t, bench.TargetConfig{}, 50)
	s := w.store.(*nativeStore)
	e, err := s.newExecutor(t.Context(), &bench.Thread{})
	if err != nil {
		t.Fatal(err)
	}
	p := newGenerator(42).person(7)
	number := numberOf(7)
	remove := func(change func(*txn.Tx) (bool, error)) {
		err := w.target.Machine(0).Run(t.Context(), func(t *txn.Tx) error { _, err := change(t); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	var k key
	remove(func(t *txn.Tx) (bool, error) { return s.tables[0].subscribers.Delete(t, k.id(7)) })
	for _, r := range []request{
		{kind: updateSubscriberData, id: 7, which: p.facilities[0].kind},
		{kind: updateLocation, id: 7},
	} {
		if err := e.execute(t.Context(), &r); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", kindNames[r.kind], err)
		}
	}
	remove(func(t *txn.Tx) (bool, error) { return s.tables[0].numbers.Delete(t, number[:]) })
	for _, kind := range []kind{updateLocation, insertCallForwarding, deleteCallForwarding} {
		if err := e.execute(t.Context(), &request{kind: kind, id: 7}); !errors.Is(err, bench.ErrInconsistent) {
			t.Errorf("%s: %v", kindNames[kind], err)
		}
	}
	m := w.target.Machine(0)
	if _, err := m.ShipTo(context.Background(), m.ID(), handlerUpdateLocation, []byte("short")); err == nil {
		t.Error("a short message")
	}
}

func TestConfig(t *testing.T) {
	for _, n := range []int{-1, subscribersMax + 1} {
		if _, err := New(&bench.Target{}, Config{Subscribers: n}); err == nil {
			t.Errorf("%d subscribers", n)
		}
	}
	w, err := New(&bench.Target{}, Config{})
	if err != nil || w.Scale() != (bench.Scale{N: 100_000, Unit: "subscribers"}) || w.Name() != "TATP" || len(w.Kinds()) != 7 {
		t.Errorf("%+v, %v", w, err)
	}
}

// The numbers of rows are those of the description, and the data are the same each time.
func TestGenerator(t *testing.T) {
	const n = 20_000
	g, again := newGenerator(1), newGenerator(1)
	var all totals
	starts := map[uint8]int{}
	for id := range uint32(n) {
		p := g.person(id + 1)
		all.add(p)
		if id%1000 == 0 {
			again.person(id + 2) // in another order
			if fmt.Sprint(p) != fmt.Sprint(again.person(id+1)) {
				t.Fatalf("subscriber %d differs", id+1)
			}
		}
		for _, f := range p.facilities {
			for _, w := range f.forwards {
				starts[w.start]++
				if w.end <= w.start || w.end > w.start+8 {
					t.Fatalf("from %d to %d", w.start, w.end)
				}
			}
		}
	}
	for what, c := range map[string]struct{ got, want float64 }{
		"access":   {float64(all.access) / n, accessMean},
		"facility": {float64(all.facilities) / n, facilityMean},
		"forward":  {float64(all.forwards) / n, forwardMean},
		"active":   {float64(all.active) / float64(all.facilities), 0.85},
		"start":    {float64(starts[8]) / float64(all.forwards), 1.0 / 3},
	} {
		if math.Abs(c.got/c.want-1) > 0.03 {
			t.Errorf("%s: %.3f, want %.3f", what, c.got, c.want)
		}
	}
	if len(starts) != 3 {
		t.Errorf("starts %v", starts)
	}
}

// Subscribers are drawn unevenly, all of them in the range, by the description's A.
func TestMix(t *testing.T) {
	for subscribers, a := range map[int]uint64{100_000: 65_535, 1_000_001: 1_048_575, 10_000_001: 2_097_151} {
		if m := newMix(1, subscribers); m.a != a {
			t.Errorf("%d subscribers: A is %d", subscribers, m.a)
		}
	}
	m := newMix(1, 100_000)
	counts := make(map[uint32]int)
	const draws = 300_000
	for range draws {
		id := m.subscriber()
		if id < 1 || id > 100_000 {
			t.Fatalf("subscriber %d", id)
		}
		counts[id]++
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	if most < 20*draws/100_000 || len(counts) > 70_000 {
		t.Errorf("%d different, one %d times: that is even", len(counts), most)
	}
	one := newMix(1, 1)
	if id := one.subscriber(); id != 1 {
		t.Errorf("subscriber %d of one", id)
	}
}

func mustCount(t *testing.T, w *Workload, delta int) {
	t.Helper()
	if err := w.target.Count(int64(delta)); err != nil {
		t.Fatal(err)
	}
}
