package skiplist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/internal/testnet"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/outcome"
)

func keyOf(i int) []byte { return fmt.Appendf(nil, "key %04d", i) }

// fill puts the even keys below n.
func fill(t testing.TB, l *List, n int) {
	t.Helper()
	for i := 0; i < n; i += 2 {
		run(t, l.m, func(tx *txn.Tx) error { return l.Put(tx, keyOf(i), keyOf(i)) })
	}
}

// look looks a key up outside of transactions, and in one.
func look(t testing.TB, l *List, key []byte) (value []byte, ok bool) {
	t.Helper()
	value, ok, err := l.Lookup(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	run(t, l.m, func(tx *txn.Tx) error {
		v, found, err := l.Get(tx, key)
		if err == nil && (found != ok || !bytes.Equal(v, value)) {
			err = fmt.Errorf("in a transaction %q is %q, %v; outside %q, %v", key, v, found, value, ok)
		}
		return err
	})
	return value, ok
}

// All machines see what one has put, by every way, over every provider.
func TestLookups(t *testing.T) {
	everywhere(t, func(t *testing.T, way testnet.Way) {
		c := open(t, way, 2, 2)
		const n = 60
		fill(t, c.lists[0], n)
		for _, w := range []lookup.Way{lookup.Measured, lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
			c.use(t, w)
			for _, l := range c.lists {
				for i := -1; i <= n; i++ {
					if v, ok := look(t, l, keyOf(i)); ok != (i >= 0 && i < n && i%2 == 0) || ok && !bytes.Equal(v, keyOf(i)) {
						t.Fatalf("%v: key %d: %q, %v", w, i, v, ok)
					}
				}
			}
		}
		c.check(t, 0)
	})
}

// A lookup costs one READ where the cache knows the key, and otherwise one message or, if it must not send any, a READ
// for each node on the way.
func TestCosts(t *testing.T) {
	everywhere(t, func(t *testing.T, way testnet.Way) {
		c := open(t, way, 2, 1)
		const n = 200
		fill(t, c.lists[0], n)
		gone := keyOf(100)
		type cost struct{ reads, asked uint64 }
		for _, w := range []lookup.Way{lookup.Measured, lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
			c.use(t, w)
			l := c.lists[1]
			measure := func(key []byte) cost {
				reads, asked := l.m.Stats().RemoteReads, l.Asked()
				tx := l.m.Begin()
				defer tx.Abort()
				if _, _, err := l.Get(tx, key); err != nil {
					t.Fatal(err)
				}
				return cost{l.m.Stats().RemoteReads - reads, l.Asked() - asked}
			}
			// The first lookup of a key, the second, one of a key that is absent, and two of a key whose
			// node was freed.
			first, second, absent := measure(gone), measure(gone), measure(keyOf(101))
			run(t, c.Machine(0), func(tx *txn.Tx) error {
				_, err := c.lists[0].Delete(tx, gone)
				return err
			})
			stale, forgotten := measure(gone), measure(gone)
			run(t, c.Machine(0), func(tx *txn.Tx) error { return c.lists[0].Put(tx, gone, gone) })
			got := [5]cost{first, second, absent, stale, forgotten}
			var want [5]cost
			switch w {
			case lookup.TwoSided:
				want = [5]cost{{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}}
			case lookup.OneSided:
				want = [5]cost{{got[0].reads, 0}, {1, 0}, {got[2].reads, 0}, {got[4].reads + 1, 0}, {got[4].reads, 0}}
				if first.reads < 3 || absent.reads < 3 || stale.reads < 4 {
					t.Errorf("%v: %v: READs of all nodes on the way", w, got)
				}
			default:
				want = [5]cost{{0, 1}, {1, 0}, {0, 1}, {1, 1}, {0, 1}}
			}
			if got != want {
				t.Errorf("%v: READs and messages of the first lookup, the second, of an absent key, of a freed node, of that again: %v, want %v", w, got, want)
			}
		}
	})
}

// A transaction that has looked a key up commits if the answer is the same then, whoever has given it.
func TestAnswersAreValidated(t *testing.T) {
	everywhere(t, func(t *testing.T, way testnet.Way) {
		for _, w := range []lookup.Way{lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
			c := open(t, way, 2, 1)
			fill(t, c.lists[0], 20)
			c.use(t, w)
			other, beside := c.lists[0], []byte("beside")
			for name, s := range map[string]struct {
				key    []byte
				change func(tx *txn.Tx) error
				aborts bool
			}{
				"nothing":          {keyOf(4), func(tx *txn.Tx) error { return nil }, false},
				"another key":      {keyOf(4), func(tx *txn.Tx) error { return other.Put(tx, keyOf(8), []byte("new")) }, false},
				"the next node":    {keyOf(6), func(tx *txn.Tx) error { return other.Put(tx, keyOf(7), nil) }, false},
				"the value":        {keyOf(10), func(tx *txn.Tx) error { return other.Put(tx, keyOf(10), []byte("new")) }, true},
				"a longer value":   {keyOf(12), func(tx *txn.Tx) error { return other.Put(tx, keyOf(12), make([]byte, 500)) }, true},
				"a removal":        {keyOf(14), func(tx *txn.Tx) error { _, err := other.Delete(tx, keyOf(14)); return err }, true},
				"an insert":        {keyOf(17), func(tx *txn.Tx) error { return other.Put(tx, keyOf(17), nil) }, true},
				"an insert beside": {keyOf(19), func(tx *txn.Tx) error { return other.Put(tx, beside, nil) }, false},
			} {
				tx := c.Machine(1).Begin()
				if _, _, err := c.lists[1].Get(tx, s.key); err != nil {
					t.Fatal(err)
				}
				run(t, c.Machine(0), s.change)
				if _, _, err := c.lists[1].Get(tx, keyOf(2)); err != nil { // what is read alone is true when it is read
					t.Fatal(err)
				}
				var abort *txn.AbortError
				err := tx.Commit(ctx)
				if isAbort := errors.As(err, &abort) && abort.Reason == txn.ReasonAnswer; isAbort != s.aborts || err != nil && !isAbort {
					t.Errorf("%v, %s: %v, want an abort: %v", w, name, err, s.aborts)
				}
			}
		}
	})
}

// A transaction sees its own changes, and nothing is left of one that is aborted or rolled back.
func TestAborts(t *testing.T) {
	everywhere(t, func(t *testing.T, way testnet.Way) {
		c := open(t, way, 2, 2)
		l := c.lists[1]
		fill(t, l, 20)
		tx := l.m.Begin()
		change := func(key []byte, want bool) {
			t.Helper()
			if err := l.Put(tx, key, make([]byte, 300)); err != nil {
				t.Fatal(err)
			}
			if was, err := l.Delete(tx, keyOf(4)); err != nil || was != want {
				t.Fatal(was, err)
			}
			v, ok, err := l.Get(tx, key)
			if err != nil || !ok || len(v) != 300 {
				t.Fatal(len(v), ok, err)
			}
			if _, ok, err := l.Get(tx, keyOf(4)); ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		mark := tx.Mark()
		change(keyOf(2), true)
		tx.Rollback(mark)
		if v, ok, err := l.Get(tx, keyOf(2)); err != nil || !ok || !bytes.Equal(v, keyOf(2)) {
			t.Fatal(v, ok, err)
		}
		change(keyOf(3), true)
		change(keyOf(5), false)
		tx.Abort()
		for i := range 20 {
			if v, ok := look(t, c.lists[0], keyOf(i)); ok != (i%2 == 0) || ok && !bytes.Equal(v, keyOf(i)) {
				t.Errorf("key %d: %q, %v", i, v, ok)
			}
		}
		c.check(t, 0)
	})
}

// Clients of all machines move amounts between accounts while others come and go: nothing is lost.
func TestTransfers(t *testing.T) {
	everywhere(t, func(t *testing.T, way testnet.Way) {
		c := open(t, way, 3, 2)
		const accounts, each = 10, 100
		for i := range accounts {
			run(t, c.Machine(0), func(tx *txn.Tx) error { return c.lists[0].Put(tx, keyOf(i), amount(each)) })
		}
		var clients sync.WaitGroup
		for m, l := range c.lists {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(m)))
				for range 30 {
					from, to := keyOf(r.IntN(accounts)), keyOf(r.IntN(accounts))
					if err := l.m.Run(ctx, func(tx *txn.Tx) error { return transfer(tx, l, from, to) }); err != nil {
						t.Error(err)
					}
					guest := fmt.Appendf(nil, "key %04d.%d", r.IntN(accounts), m)
					if err := l.m.Run(ctx, func(tx *txn.Tx) error {
						if was, err := l.Delete(tx, guest); was || err != nil {
							return err
						}
						return l.Put(tx, guest, nil)
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		for _, l := range c.lists {
			if got := total(t, l, accounts); got != accounts*each {
				t.Errorf("%d in all, want %d", got, accounts*each)
			}
		}
		c.check(t, 0)
	})
}

func amount(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// transfer moves 1 between two accounts.
func transfer(tx *txn.Tx, l *List, from, to []byte) error {
	for _, s := range []struct {
		key []byte
		by  int
	}{{from, -1}, {to, 1}} {
		v, ok, err := l.Get(tx, s.key)
		if err == nil && !ok {
			err = fmt.Errorf("account %q is gone", s.key)
		}
		if err != nil {
			return err
		}
		if err := l.Put(tx, s.key, amount(int(binary.LittleEndian.Uint64(v))+s.by)); err != nil {
			return err
		}
	}
	return nil
}

// total returns the sum of all accounts, as one transaction sees it.
func total(t *testing.T, l *List, accounts int) (sum int) {
	t.Helper()
	run(t, l.m, func(tx *txn.Tx) error {
		sum = 0
		for i := range accounts {
			v, ok, err := l.Get(tx, keyOf(i))
			if err != nil || !ok {
				return fmt.Errorf("account %d: %v, %w", i, ok, err)
			}
			sum += int(binary.LittleEndian.Uint64(v))
		}
		return nil
	})
	return sum
}

// The owner is killed while others look up and change: they go on at the next primary, and what was
// committed is there.
func TestOwnerKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, way testnet.Way) {
		for _, w := range []lookup.Way{lookup.OneSided, lookup.OneTwoSided, lookup.TwoSided} {
			t.Run(w.String(), func(t *testing.T) {
				c := open(t, way, 4, 3)
				fill(t, c.lists[0], 40)
				c.use(t, w)
				killed, before := make(chan struct{}), sync.WaitGroup{}
				var clients sync.WaitGroup
				for _, l := range c.lists[1:] {
					before.Add(1)
					clients.Go(func() { goOn(t, l, killed, before.Done) })
				}
				before.Wait()
				if err := c.Kill(0); err != nil {
					t.Error(err)
				}
				close(killed)
				clients.Wait()
				for i := range 40 {
					if v, ok := look(t, c.lists[3], keyOf(i)); ok != (i%2 == 0) || ok && !bytes.Equal(v, keyOf(i)) {
						t.Errorf("key %d: %q, %v", i, v, ok)
					}
				}
				if c.lists[1].m.IsPrimary(c.lists[1].head.Addr) == c.lists[2].m.IsPrimary(c.lists[1].head.Addr) && !c.lists[3].m.IsPrimary(c.lists[1].head.Addr) {
					t.Error("nobody has become the primary")
				}
			})
		}
	})
}

// goOn looks keys up and changes one, until the machine has been killed and then some; it calls begun once it does.
func goOn(t *testing.T, l *List, killed <-chan struct{}, begun func()) {
	for i, more := 0, 40; more > 0; i++ {
		if i == 20 {
			begun()
		}
		select {
		case <-killed:
			more--
		default:
		}
		key := keyOf(i % 20 * 2)
		v, ok, err := l.Lookup(ctx, key)
		if err != nil || !ok || !bytes.Equal(v, key) {
			t.Errorf("lookup of %q: %q, %v, %v", key, v, ok, err)
		}
		err = l.m.Run(ctx, func(tx *txn.Tx) error {
			v, ok, err := l.Get(tx, key)
			if err == nil && (!ok || !bytes.Equal(v, key)) {
				err = fmt.Errorf("%q is %q, %v", key, v, ok)
			}
			if err == nil && i%8 == 0 {
				err = l.Put(tx, key, key)
			}
			return err
		})
		if err != nil && !errors.Is(err, outcome.ErrInDoubt) {
			t.Error(err)
		}
	}
}
