package verbs

import (
	"math/rand/v2"
	"testing"
)

// A WRITE that follows a READ which is not done waits for it, the WRITEs after that do not wait again, and no READ waits.
func TestFences(t *testing.T) {
	f := flow{depth: 64}
	for i, c := range []struct {
		op     wireOp
		bytes  int
		finish uint64 // what is done before
		settle bool   // a READ that nobody wants comes before
		want   bool
	}{
		{wireWrite, 8, 0, false, false},
		{wireRead, 8, 0, false, false},
		{wireWrite, 8, 0, false, true},
		{wireWrite, 8, 0, false, false},
		{wireRead, 8, 0, false, false},
		{wireRead, 8, 0, false, false},
		{wireWriteRing, 0, 0, false, true},
		{wireWrite, 8, 0, true, false},
		{wireRead, 8, 0, false, false},
		{wireWrite, 8, 10, false, false}, // the READ, place 10, is done
	} {
		if c.settle {
			f.settle()
		}
		if c.finish > 0 && !f.finish(c.finish) {
			t.Fatalf("request %d: place %d cannot be finished", i, c.finish)
		}
		if _, fence := f.next(c.op, c.bytes); fence != c.want {
			t.Errorf("request %d: fenced %v, want %v", i, fence, c.want)
		}
	}
}

// A card that takes only what its send queue has places for, and says what is done only of requests that are signalled, never gets
// too much, and never has nothing more to say while places are taken.
func TestCreditsComeBack(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	f := flow{depth: sendDepth}
	var signals []uint64 // places of which the card will tell
	for range 200_000 {
		if f.room() < 2 {
			if len(signals) == 0 {
				t.Fatalf("all %d places are taken, and no completion will come", f.issued-f.done)
			}
			f.finish(signals[0])
			signals = signals[1:]
			continue
		}
		place, _ := f.next(wireWrite, int(draw.Int32N(4096)))
		if f.isDue() {
			f.signal(place)
			signals = append(signals, place)
		}
		if n := f.issued - f.done; n > sendDepth {
			t.Fatalf("%d requests in a send queue of %d", n, sendDepth)
		}
		if len(signals) > 0 && draw.IntN(100) == 0 {
			f.finish(signals[0])
			signals = signals[1:]
		}
	}
}

func TestFinish(t *testing.T) {
	f := flow{depth: 8}
	for range 5 {
		f.next(wireWrite, 8)
	}
	for _, c := range []struct {
		place uint64
		want  bool
	}{{3, true}, {3, false}, {2, false}, {6, false}, {5, true}} {
		if f.finish(c.place) != c.want {
			t.Errorf("place %d finished: %v, want %v", c.place, !c.want, c.want)
		}
	}
	if n := f.room(); n != 7 {
		t.Errorf("room for %d, want 7", n)
	}
}

// A completion brings 32 bits of its place.
func TestPlace(t *testing.T) {
	f := flow{issued: 5<<32 + 3}
	for low, want := range map[uint32]uint64{3: 5<<32 + 3, 0: 5 << 32, 1<<32 - 1: 5<<32 - 1, 1 << 31: 4<<32 + 1<<31} {
		if got := f.place(low); got != want {
			t.Errorf("place %#x is %#x, want %#x", low, got, want)
		}
	}
	f = flow{issued: 7}
	if got := f.place(9); got != 9 || f.finish(got) {
		t.Errorf("a place that was never issued is %d, and counts as under way", got)
	}
	if id := idOf(7, 1<<31); connOf(id) != 7 || placeOf(id) != 1<<31 {
		t.Errorf("id %#x does not come apart", id)
	}
}

// Whatever is in use at a moment does not overlap, lies within the memory, and comes back in order.
func TestStaging(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	s := staging{size: 1 << 12}
	type part struct{ at, n, end uint64 }
	var used []part
	full := 0
	for range 100_000 {
		n := 8 * (1 + draw.Uint64N(1<<9/8))
		at, end, ok := s.take(int(n))
		if !ok {
			if full++; len(used) == 0 {
				t.Fatalf("no room for %d bytes in an empty staging", n)
			}
			s.free(used[0].end)
			used = used[1:]
			continue
		}
		if at+n > s.size {
			t.Fatalf("%d bytes at %d go beyond the end", n, at)
		}
		for _, u := range used {
			if at < u.at+u.n && u.at < at+n {
				t.Fatalf("%d bytes at %d are in use: %+v", n, at, u)
			}
		}
		used = append(used, part{at, n, end})
	}
	if full == 0 {
		t.Error("the staging was never full")
	}
}

func TestReceives(t *testing.T) {
	r := receives{depth: 64}
	if n := r.missing(); n != 64 || r.isLow() {
		t.Errorf("at the beginning %d are missing, and then it is low: %v", n, r.isLow())
	}
	for i := 1; i < 16; i++ {
		if r.use(1); r.missing() != 0 {
			t.Fatalf("posted anew after %d rings, not in a batch", i)
		}
	}
	if r.use(1); !r.isLow() || r.missing() != 16 || r.missing() != 0 {
		t.Error("not posted anew after 16 rings, once")
	}
	if r.used != 16 {
		t.Errorf("%d rings are counted", r.used)
	}
	one := receives{depth: 1}
	if one.missing(); one.isLow() {
		t.Error("a queue of one is low when it has one")
	}
	if one.use(1); one.missing() != 1 {
		t.Error("a queue of one is not filled")
	}
}

func TestInline(t *testing.T) {
	for _, c := range []struct {
		op    wireOp
		bytes int
		want  bool
	}{{wireWrite, 8, true}, {wireWrite, 128, true}, {wireWrite, 136, false}, {wireWriteRing, 64, true}, {wireWriteRing, 0, false}, {wireRead, 8, false}} {
		if isInline(c.op, c.bytes, 128) != c.want {
			t.Errorf("operation %d of %d bytes: inline %v", c.op, c.bytes, !c.want)
		}
	}
}
