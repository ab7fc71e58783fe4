package region

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchSizes are raw object sizes.
var benchSizes = []int{64, 128, 256}

// benchSets are working sets: in the cache, and far beyond it.
var benchSets = []struct {
	name  string
	bytes int
}{{"hot", 256 << 10}, {"cold", 256 << 20}}

// benchObjects fills a new region with objects of the given size, and returns
// them in random order.
func benchObjects(b *testing.B, size, set int) (*Region, []Ptr) {
	b.Helper()
	if testing.Short() { // only to see that it runs
		set = min(set, 4<<20)
	}
	r := newRegion(b, 1, int64(max(2*set, 4<<20)))
	a := newAllocator(b, AllocatorConfig{}, r)
	p := &pair{primary: r}
	ptrs := make([]Ptr, set/size)
	c := classOf[size/lineBytes]
	for i := range ptrs {
		ptr, v := mustAlloc(b, a, 0, c.Capacity(), 0)
		p.commit(b, ptr, v, []byte{byte(i)})
		ptrs[i] = ptr
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(ptrs), func(i, j int) { ptrs[i], ptrs[j] = ptrs[j], ptrs[i] })
	return r, ptrs
}

// eachSet runs fn for every size and working set. fn is given the objects in
// random order; the sequence itself is read in order.
func eachSet(b *testing.B, fn func(b *testing.B, r *Region, ptrs []Ptr)) {
	for _, size := range benchSizes {
		for _, set := range benchSets {
			b.Run(fmt.Sprintf("%dB/%s", size, set.name), func(b *testing.B) {
				r, ptrs := benchObjects(b, size, set.bytes)
				b.ReportAllocs()
				fn(b, r, ptrs)
			})
		}
	}
}

func BenchmarkReadObject(b *testing.B) {
	dst := make([]byte, 256)
	eachSet(b, func(b *testing.B, r *Region, ptrs []Ptr) {
		i, sum := 0, uint64(0)
		for b.Loop() {
			if _, err := r.ReadObject(ptrs[i], dst); err != nil {
				b.Fatal(err)
			}
			sum += uint64(dst[0])
			if i++; i == len(ptrs) {
				i = 0
			}
		}
		b.ReportMetric(float64(sum%256), "hash")
	})
}

// BenchmarkReadDependent measures a lookup by pointer. Each object names the next one, so every
// read waits for the read before.
func BenchmarkReadDependent(b *testing.B) {
	dst := make([]byte, 256)
	eachSet(b, func(b *testing.B, r *Region, ptrs []Ptr) {
		p := &pair{primary: r}
		for i, ptr := range ptrs {
			p.commit(b, ptr, 1, ptrs[(i+1)%len(ptrs)].Append(nil))
		}
		ptr := ptrs[0]
		for b.Loop() {
			if _, err := r.ReadObject(ptr, dst); err != nil {
				b.Fatal(err)
			}
			ptr, _ = DecodePtr(dst)
		}
	})
}

// BenchmarkDependentLoad measures one cache miss in the same memory.
func BenchmarkDependentLoad(b *testing.B) {
	r, ptrs := benchObjects(b, 64, benchSets[1].bytes)
	for i, ptr := range ptrs {
		r.m.Store(uint64(ptr.Addr.Offset())+HeaderBytes, uint64(ptrs[(i+1)%len(ptrs)].Addr.Offset()))
	}
	off := uint64(ptrs[0].Addr.Offset())
	for b.Loop() {
		off = r.m.Load(off + HeaderBytes)
	}
}

func BenchmarkUnpack(b *testing.B) {
	dst, raw := make([]byte, 256), make([]byte, 256)
	eachSet(b, func(b *testing.B, r *Region, ptrs []Ptr) {
		i := 0
		for b.Loop() {
			ptr := ptrs[i]
			raw := raw[:ptr.Class().Size()]
			r.m.CopyOut(raw, uint64(ptr.Addr.Offset()))
			if _, err := Unpack(dst, raw, ptr); err != nil {
				b.Fatal(err)
			}
			if i++; i == len(ptrs) {
				i = 0
			}
		}
	})
}

// BenchmarkWrite locks, writes and unlocks.
func BenchmarkWrite(b *testing.B) {
	payload := make([]byte, 256)
	eachSet(b, func(b *testing.B, r *Region, ptrs []Ptr) {
		payload := payload[:ptrs[0].Capacity()]
		i, v := 0, Version(1)
		for b.Loop() {
			if !r.Lock(ptrs[i], v) {
				b.Fatal("locked")
			}
			r.Write(ptrs[i], payload, v+1, true, 0)
			if i++; i == len(ptrs) {
				i, v = 0, v+1
			}
		}
	})
}

// BenchmarkAlloc reserves slots of slabs that are new, and of one whose slots
// come and go.
func BenchmarkAlloc(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		r := newRegion(b, 1, 1<<30)
		a := newAllocator(b, AllocatorConfig{Workers: 1}, r)
		n := 0
		for b.Loop() {
			if _, _, _, err := a.Alloc(Ordinary, 0, 40, 0); err != nil {
				b.StopTimer()
				leave(a, 1)
				a.Keep(func(ID) (isOurs, goesOn bool) { return true, true })
				a.Add(newRegion(b, 1, 1<<30))
				b.StartTimer()
			}
			n++
		}
	})
	for _, hinted := range []bool{false, true} {
		b.Run(fmt.Sprintf("again/hint=%v", hinted), func(b *testing.B) {
			a := newAllocator(b, AllocatorConfig{Workers: 1}, newRegion(b, 1, 64<<20))
			first, _ := mustAlloc(b, a, 0, 40, 0)
			hint := Addr(0)
			if hinted {
				hint = first.Addr
			}
			b.ReportAllocs()
			for b.Loop() {
				p, _, _, err := a.Alloc(Ordinary, 0, 40, hint)
				if err != nil {
					b.Fatal(err)
				}
				a.Release(p)
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		a := newAllocator(b, AllocatorConfig{Workers: 1}, newRegion(b, 1, 64<<20))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, _, _, err := a.Alloc(Ordinary, 0, 40, 0)
				if err != nil {
					b.Fatal(err)
				}
				a.Release(p)
			}
		})
	})
}

// BenchmarkRebuild measures the scan that rebuilds the free lists, per object.
func BenchmarkRebuild(b *testing.B) {
	r, ptrs := benchObjects(b, 128, 256<<20)
	for b.Loop() {
		a := NewAllocator(AllocatorConfig{})
		a.Add(r)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ptrs)), "ns/object")
}
