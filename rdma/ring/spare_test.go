package ring

import (
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// Whatever is in the spare parts of a ring, wherever the stream has come to: all records
// that have not been freed are there when it is opened again, and no other.
func TestSpare(t *testing.T) {
	const size, garbage = 4096, 0x6b6b6b6b6b6b6b6b
	m := nvram.NewMemory(size)
	rx, err := Create(m, 0, size, 7)
	if err != nil {
		t.Fatal(err)
	}
	st, err := rx.State()
	if err != nil {
		t.Fatal(err)
	}
	tx := NewLocalSender(st, m, 0)
	sent := 0
	for round := range 200 {
		for tx.Available() > Space(200) && (sent+round)%5 != 0 || tx.Available() == tx.Bytes() {
			if _, _, err := tx.Append(0, []byte{byte(sent)}, make([]byte, sent%199)); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		var spare uint64
		err := rx.Spare(func(off, n uint64) {
			spare += n
			for ; n > 0; off, n = off+8, n-8 {
				m.Store(off, garbage)
			}
		})
		if err != nil || spare == 0 || spare >= size {
			t.Fatalf("%d bytes are spare, %v", spare, err)
		}
		again, err := Open(m, 0, size)
		if err != nil {
			t.Fatal(err)
		}
		var ends []uint64
		for {
			rec, ok, err := again.Poll()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			ends = append(ends, rec.End)
		}
		if again.Next() != tx.tail.pos {
			t.Fatalf("round %d: records end at %d, the sender is at %d", round, again.Next(), tx.tail.pos)
		}
		for rx.Next() < again.Next() { // as the receiver does
			if _, ok, err := rx.Poll(); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		rx.Free(ends[(len(ends)-1)*(round%3)/2])
	}
}
