package local

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// pair returns worker 0's queue at machine 1 of a new network, and memory of
// machine 2, registered under key 7.
func pair(tb testing.TB, o Options) (*Network, rdma.Queue, *nvram.Memory) {
	n := NewNetwork(o)
	var queues [2]rdma.Queue
	for i := range queues {
		nic, err := n.Join(rdma.MachineID(i + 1))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { nic.Close() })
		if queues[i], err = nic.Open(0, nil); err != nil {
			tb.Fatal(err)
		}
		if i == 1 {
			m := nvram.NewMemory(1 << 16)
			if err := nic.Register(7, m); err != nil {
				tb.Fatal(err)
			}
			return n, queues[0], m
		}
	}
	panic("unreachable")
}

func BenchmarkRead(b *testing.B)  { benchmarkTransfer(b, rdma.Queue.Read) }
func BenchmarkWrite(b *testing.B) { benchmarkTransfer(b, rdma.Queue.Write) }

func benchmarkTransfer(b *testing.B, transfer func(rdma.Queue, rdma.MachineID, rdma.Key, uint64, []byte, uint64) (bool, error)) {
	for _, size := range []int{8, 64, 128, 256, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, q, _ := pair(b, Options{})
			buf := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if done, err := transfer(q, 2, 7, 64, buf, 1); !done || err != nil {
					b.Fatal(done, err)
				}
			}
		})
	}
}
