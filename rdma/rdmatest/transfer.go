package rdmatest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// pattern returns n bytes that depend on seed and position.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i)*7 + byte(i>>8)
	}
	return b
}

// words returns n words of value v.
func words(n int, v uint64) []byte {
	b := make([]byte, 8*n)
	for i := range n {
		binary.NativeEndian.PutUint64(b[8*i:], v)
	}
	return b
}

func testTransfers(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	for i, size := range []int{8, 16, 56, 64, 72, 120, 128, 1024, 4096, 4104, 32768} {
		for _, off := range []uint64{0, 8, 64, 1000, memoryBytes - uint64(size)} {
			to.memory.Zero(0, memoryBytes)
			want, got := pattern(size, byte(i)), make([]byte, size)
			if err := from.write(2, key, off, want); err != nil {
				t.Fatalf("write %d at %d: %v", size, off, err)
			}
			if err := from.read(2, key, off, got); err != nil {
				t.Fatalf("read %d at %d: %v", size, off, err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes at %d: read is not what was written", size, off)
			}
			all := make([]byte, memoryBytes)
			to.memory.CopyOut(all, 0)
			if !bytes.Equal(all[off:off+uint64(size)], want) {
				t.Errorf("%d bytes at %d: memory is not what was written", size, off)
			}
			clear(all[off : off+uint64(size)])
			if !bytes.Equal(all, make([]byte, memoryBytes)) {
				t.Errorf("%d bytes at %d: memory around was written", size, off)
			}
		}
	}
	from.none()
}

// testTags posts reads and writes in a batch: each pending one that is
// signalled is reported once, with its tag and in order.
func testTags(t *testing.T, f Fabric) {
	from, _ := twoMachines(t, f)
	var want []uint64
	buf := make([]byte, 64*64)
	for i := range uint64(64) {
		tag, part := i+1, buf[64*i:64*i+64]
		if i%4 == 3 {
			tag = rdma.Unsignalled
		}
		post := from.q.Write
		if i%2 == 1 {
			post = from.q.Read
		}
		done, err := post(2, key, 64*i, part, tag)
		if err != nil {
			t.Fatal(err)
		}
		if !done && tag != rdma.Unsignalled {
			want = append(want, tag)
		}
	}
	for i, c := range from.poll(len(want)) {
		if c.Tag != want[i] || c.To != 2 || c.Err != nil {
			t.Errorf("completion %d is %+v, want tag %d to 2", i, c, want[i])
		}
	}
	if err := from.read(2, key, 0, buf); err != nil { // flushes the unsignalled
		t.Error(err)
	}
	from.none()
}

// testOrderOfOneQueue posts writes to one word and reads between them, without waiting: each read
// must see the write before it.
func testOrderOfOneQueue(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	const rounds = 200
	seen := make([]byte, 8*rounds)
	pending := 0
	for i := range uint64(rounds) {
		for _, done := range []bool{
			must(from.q.Write(2, key, 512, words(1, i+1), i))(t),
			must(from.q.Read(2, key, 512, seen[8*i:8*i+8], i))(t),
		} {
			if !done {
				pending++
			}
		}
	}
	from.poll(pending)
	for i := range uint64(rounds) {
		if v := binary.NativeEndian.Uint64(seen[8*i:]); v != i+1 {
			t.Fatalf("read after write %d saw %d", i+1, v)
		}
	}
	if v := to.memory.Load(512); v != rounds {
		t.Errorf("memory holds %d, want %d", v, rounds)
	}
}

// must returns a post's result, and fails the test if the post failed. Used as must(post)(t): Go passes two
// results on only to a call that has no other arguments.
func must(done bool, err error) func(*testing.T) bool {
	return func(t *testing.T) bool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
}

func testSourceMayBeReused(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	pending := 0
	src := make([]byte, 256)
	for i := range uint64(100) {
		copy(src, words(32, i+1))
		if !must(from.q.Write(2, key, 256*i, src, 1))(t) {
			pending++
		}
		clear(src)
	}
	from.poll(pending)
	for i := range uint64(100) {
		for w := range uint64(32) {
			if v := to.memory.Load(256*i + 8*w); v != i+1 {
				t.Fatalf("write %d, word %d: %d", i+1, w, v)
			}
		}
	}
}

// raceMax bounds how long a test lets a reader and a writer race: over sockets a round takes long, since
// one of the two keeps a processor busy.
const raceMax = 2 * time.Second

// testWriteLandsInRisingOrder polls a buffer that is overwritten with rising numbers. After
// seeing a number at some place, the poller must find that number or a larger one in all lines
// before, and everywhere if the place was the last word.
func testWriteLandsInRisingOrder(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	const off, count, rounds = 24, 61, 3000 // writes begin in the middle of a line
	var finished atomic.Bool
	result := make(chan string, 1)
	go func() {
		defer close(result)
		for i := 0; !finished.Load(); i++ {
			at := uint64(count - 1)
			if i%2 == 1 {
				at = uint64(i*7) % count
			}
			seen := to.memory.Load(off + 8*at)
			for w := range at {
				sameLine := (off+8*w)/rdma.LineBytes == (off+8*at)/rdma.LineBytes
				if v := to.memory.Load(off + 8*w); v < seen && (at == count-1 || !sameLine) {
					result <- "a word is visible before an earlier one"
					return
				}
			}
		}
	}()
	for i, begin := uint64(0), time.Now(); i < rounds && time.Since(begin) < raceMax; i++ {
		if err := from.write(2, key, off, words(count, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	finished.Store(true)
	if wrong, bad := <-result; bad {
		t.Error(wrong)
	}
}

// testReadIsAtomicPerLine reads lines while their owner changes them as FaRM
// changes objects: first word to "busy", the rest, first word to the new value.
func testReadIsAtomicPerLine(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	const busy, lines = math.MaxUint64, 4
	var finished atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for v := uint64(1); !finished.Load(); v++ {
			for line := range uint64(lines) {
				to.memory.Store(64*line, busy)
				for w := uint64(1); w < 8; w++ {
					to.memory.Store(64*line+8*w, v)
				}
				to.memory.Store(64*line, v)
			}
		}
	}()
	buf := make([]byte, 64*lines)
	for i, begin := 0, time.Now(); i < 3000 && time.Since(begin) < raceMax; i++ {
		if err := from.read(2, key, 0, buf); err != nil {
			t.Fatal(err)
		}
		for line := 0; line < lines; line++ {
			first := binary.NativeEndian.Uint64(buf[64*line:])
			if first != busy && !bytes.Equal(buf[64*line:64*line+64], words(8, first)) {
				t.Fatalf("line %d is torn: %x", line, buf[64*line:64*line+64])
			}
		}
	}
	finished.Store(true)
	<-ended
}

func testOutOfRange(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	for _, c := range []struct {
		off  uint64
		size int
	}{
		{0, 0}, {0, 4}, {4, 8}, {0, 12}, {memoryBytes, 8}, {memoryBytes - 8, 16}, {8, memoryBytes},
		{math.MaxUint64 - 7, 8}, {math.MaxUint64 - 7, 16}, {1 << 63, 8}, {0, memoryBytes + 8},
	} {
		src := bytes.Repeat([]byte{1}, c.size)
		if err := from.write(2, key, c.off, src); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("write of %d at %d: %v, want ErrRange", c.size, c.off, err)
		}
		if err := from.read(2, key, c.off, src); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("read of %d at %d: %v, want ErrRange", c.size, c.off, err)
		}
	}
	all := make([]byte, memoryBytes)
	to.memory.CopyOut(all, 0)
	if !bytes.Equal(all, make([]byte, memoryBytes)) {
		t.Error("a refused write was carried out in part")
	}
	if err := from.write(2, key, 0, words(1, 1)); err != nil {
		t.Errorf("after refused operations: %v", err)
	}
}

func testUnknownKey(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	isKeyError := func(err error) bool {
		var e *rdma.Error
		return errors.Is(err, rdma.ErrKey) && errors.As(err, &e) && e.To == 2
	}
	for _, k := range []rdma.Key{0, key + 1, math.MaxUint64} {
		if err := from.write(2, k, 0, words(1, 1)); !isKeyError(err) {
			t.Errorf("write to key %#x: %v, want ErrKey", k, err)
		}
		if err := from.read(2, k, 0, words(1, 1)); !isKeyError(err) {
			t.Errorf("read of key %#x: %v, want ErrKey", k, err)
		}
	}
	for k := rdma.Key(1); k < 500; k++ { // try again among many registrations
		if err := to.nic.Register(k<<32, to.memory); err != nil {
			t.Fatal(err)
		}
	}
	for k := rdma.Key(1); k < 500; k += 2 {
		to.nic.Deregister(k << 32)
	}
	for k := rdma.Key(1); k < 500; k++ {
		err := from.write(2, k<<32, 8*uint64(k), words(1, uint64(k)))
		if gone := k%2 == 1; (gone && !isKeyError(err)) || (!gone && err != nil) {
			t.Errorf("write to key %#x, deregistered %v: %v", k<<32, gone, err)
		}
	}
}

// testRefusedOperationsBreakNothing posts operations that name no registration, or a place outside
// of it, among good ones and without waiting: each is refused, by the post or by its Completion, with
// an error that says where it was to go, and all others are carried out.
func testRefusedOperationsBreakNothing(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	pending := 0
	refused := map[uint64]error{} // by tag, what the Completions of bad operations must say
	isRefusal := func(err, want error, k rdma.Key, off uint64) bool {
		var e *rdma.Error
		return errors.Is(err, want) && errors.As(err, &e) && e.To == 2 && e.Key == k && e.Offset == off && e.Bytes == 8
	}
	for i := range uint64(50) {
		if !must(from.q.Write(2, key, 8*i, words(1, i+1), 1))(t) {
			pending++
		}
		for _, bad := range []struct {
			key rdma.Key
			off uint64
			err error
		}{{key + 1, 64, rdma.ErrKey}, {key, memoryBytes, rdma.ErrRange}, {key, 8*i + 4, rdma.ErrRange}} {
			for _, post := range []func(rdma.MachineID, rdma.Key, uint64, []byte, uint64) (bool, error){from.q.Read, from.q.Write, from.q.WriteRing} {
				tag := uint64(2 + len(refused))
				done, err := post(2, bad.key, bad.off, words(1, 99), tag)
				switch {
				case err == nil && !done:
					refused[tag] = bad.err
					pending++
				case done || !isRefusal(err, bad.err, bad.key, bad.off):
					t.Fatalf("key %#x, offset %d: %v, %v, want %v", bad.key, bad.off, done, err, bad.err)
				}
			}
		}
	}
	for _, c := range from.poll(pending) {
		if want := refused[c.Tag]; !errors.Is(c.Err, want) || (want == nil && c.Err != nil) {
			t.Errorf("completion %+v, want %v", c, want)
		}
	}
	from.none()
	for i := range uint64(50) {
		if v := to.memory.Load(8 * i); v != i+1 {
			t.Errorf("write %d has left %d", i+1, v)
		}
	}
}

// testRegistrationEndsMeanwhile ends a registration while operations are on their way to it. They
// fail, maybe with the connection; once the failures are polled, other registrations can be reached.
func testRegistrationEndsMeanwhile(t *testing.T, f Fabric) {
	from, to := twoMachines(t, f)
	other, err := nvram.NewShared(memoryBytes)
	if err != nil {
		t.Fatal(err)
	}
	isRefusal := func(err error) bool { return errors.Is(err, rdma.ErrKey) || errors.Is(err, rdma.ErrBroken) }
	for round := range uint64(5) {
		if err := to.nic.Register(key+1, other); err != nil {
			t.Fatal(err)
		}
		pending, written := 0, uint64(0)
		for i := range uint64(200) {
			if i == 100 {
				to.nic.Deregister(key + 1)
			}
			done, err := from.q.Write(2, key+1, 0, words(1, round<<32|i+1), i)
			if i%9 == 0 {
				from.q.Flush()
			}
			if (err != nil && !isRefusal(err)) || (err == nil && done && i >= 100) {
				t.Fatalf("write %d: %v, %v", i+1, done, err)
			}
			if done {
				written = i + 1
			}
			if err == nil && !done {
				pending++
			}
		}
		failed := false
		for _, c := range from.poll(pending) {
			if (c.Err != nil && !isRefusal(c.Err)) || (c.Err == nil && failed) {
				t.Fatalf("completion %+v, after a failure %v", c, failed)
			}
			if failed = c.Err != nil; !failed {
				written = c.Tag + 1
			}
		}
		if v := other.Load(0); v > round<<32|100 || (written > 0 && v < round<<32|written) {
			t.Errorf("round %d: memory holds %#x, after %d writes", round, v, written)
		}
		if err := from.write(2, key, 0, words(1, round+1)); err != nil {
			t.Errorf("another registration, afterwards: %v", err)
		}
	}
}
