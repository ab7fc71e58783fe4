package ring

import (
	"fmt"
	"testing"
)

// BenchmarkAppend appends records and takes them out again, in batches of 16.
func BenchmarkAppend(b *testing.B) {
	for _, remote := range []bool{false, true} {
		for _, size := range []int{128, 512} {
			b.Run(fmt.Sprintf("remote=%v/%d", remote, size), func(b *testing.B) {
				p := newPair(b, pairOptions{remote: remote, bytes: 1 << 16})
				payload := make([]byte, size)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, _, err := p.sender.Append(1, payload); err != nil {
						b.Fatal(err)
					}
					if i%16 == 15 {
						drain(b, p.receiver)
					}
				}
			})
		}
	}
}

// BenchmarkAppendOnly leaves the receiver out, but for emptying the ring.
func BenchmarkAppendOnly(b *testing.B) {
	p := newPair(b, pairOptions{bytes: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		payload := p.sender.Stage(128)
		payload[0] = 1
		if _, _, err := p.sender.Post(1); err != nil {
			b.StopTimer()
			drain(b, p.receiver)
			b.StartTimer()
		}
	}
}

// BenchmarkPollEmpty measures what an idle ring costs its receiver.
func BenchmarkPollEmpty(b *testing.B) {
	p := newPair(b, pairOptions{bytes: 1 << 16})
	for b.Loop() {
		if _, ok, err := p.receiver.Poll(); ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func drain(b *testing.B, r *Receiver) {
	for {
		_, ok, err := r.Poll()
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			r.Free(r.Next())
			return
		}
	}
}
