package tatp

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/farmsql/farmsql/index/hash"
	"golang.org/x/sync/errgroup"
)

// check walks the tables, with the checks of the hash tables themselves. Each pair must be a drawn
// pair of its subscriber, and there must be as many pairs as were drawn. Then no pair is missing,
// because the tables have each key only once.
func (s *nativeStore) check(ctx context.Context, loaded *totals, forwards span) error {
	tb := &s.tables[s.here[0]]
	n := exactly(s.w.cfg.Subscribers)
	walks, ctx := errgroup.WithContext(ctx)
	for _, table := range []struct {
		name string
		tb   *hash.Table
		rows span
		row  func(g *generator, key, row []byte) bool
	}{
		{"subscribers", tb.subscribers, n, s.isSubscriber},
		{"numbers", tb.numbers, n, s.isNumber},
		{"access information", tb.access, exactly(loaded.access), s.isAccess},
		{"facilities", tb.facilities, exactly(loaded.facilities), s.isFacility},
		{"call forwarding", tb.forwards, forwards, s.isForward},
	} {
		walks.Go(func() error {
			g, rows := newGenerator(s.w.cfg.Seed), int64(0)
			err := table.tb.Check(ctx, hash.Visitor{Pair: func(key, row []byte) error {
				rows++
				if !table.row(g, key, row) {
					return broken("%s: key %x has the row %x", table.name, key, row)
				}
				return nil
			}})
			if err == nil && !table.rows.has(rows) {
				err = broken("%s: %d rows, want %v", table.name, rows, table.rows)
			}
			return err
		})
	}
	return walks.Wait()
}

// person returns the generated subscriber whose identifier is the beginning of key, or nil if
// there is none.
func (s *nativeStore) person(g *generator, key []byte, keyBytes int) *person {
	if len(key) != keyBytes {
		return nil
	}
	id := binary.LittleEndian.Uint32(key)
	if id < 1 || id > uint32(s.w.cfg.Subscribers) {
		return nil
	}
	return g.person(id)
}

// isSubscriber reports whether a row is as loaded, except for the two columns that transactions
// change: one bit and the location.
func (s *nativeStore) isSubscriber(g *generator, key, row []byte) bool {
	p := s.person(g, key, idBytes)
	if p == nil {
		return false
	}
	want := p.subscriber.encode(nil)
	if len(row) != len(want) || binary.LittleEndian.Uint32(row[subscriberVLR:]) == 0 {
		return false
	}
	want[subscriberBits] = (want[subscriberBits] &^ 1) | (row[subscriberBits] & 1)
	return sameBut(row, want, subscriberVLR, subscriberVLR+4)
}

func (s *nativeStore) isNumber(g *generator, key, row []byte) bool {
	p := s.person(g, row, idBytes)
	if p == nil {
		return false
	}
	number := numberOf(p.id)
	return bytes.Equal(key, number[:])
}

func (s *nativeStore) isAccess(g *generator, key, row []byte) bool {
	p := s.person(g, key, kindKeyBytes)
	if p == nil {
		return false
	}
	for _, a := range p.access {
		if a.kind == key[idBytes] {
			return bytes.Equal(row, a.encode(nil))
		}
	}
	return false
}

func (s *nativeStore) isFacility(g *generator, key, row []byte) bool {
	p := s.person(g, key, kindKeyBytes)
	if p == nil {
		return false
	}
	f := p.find(key[idBytes])
	return f != nil && sameBut(row, f.encode(nil), facilityDataA, facilityDataA+1)
}

// isForward reports whether a row is a possible call forwarding of an existing facility. The row may
// have been inserted by a transaction. Facilities never change.
func (s *nativeStore) isForward(g *generator, key, row []byte) bool {
	p := s.person(g, key, forwardKeyBytes)
	if p == nil || p.find(key[idBytes]) == nil || len(row) != forwardBytes {
		return false
	}
	start, end := key[kindKeyBytes], forwardEnd(row)
	for _, c := range row[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return start%startStep == 0 && start < endMax && end >= 1 && end <= endMax
}
