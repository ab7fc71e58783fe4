//go:build !race

package shm

import (
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// pair returns worker 0's queue at machine 1, and memory of machine 2, registered
// under key 7; both are in this process.
func pair(tb testing.TB) (rdma.Queue, *NIC, *nvram.Memory) {
	path := folderOf(tb)
	var queues [2]rdma.Queue
	for i := range queues {
		nic, err := Join(path, rdma.MachineID(i+1))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = nic.Close() })
		if queues[i], err = nic.Open(0, nil); err != nil {
			tb.Fatal(err)
		}
		if i == 1 {
			m, err := nvram.NewShared(1 << 16)
			if err != nil {
				tb.Fatal(err)
			}
			if err := nic.Register(7, m); err != nil {
				tb.Fatal(err)
			}
			return queues[0], nic, m
		}
	}
	panic("unreachable")
}

func BenchmarkRead(b *testing.B)  { benchmarkTransfer(b, rdma.Queue.Read) }
func BenchmarkWrite(b *testing.B) { benchmarkTransfer(b, rdma.Queue.Write) }

func benchmarkTransfer(b *testing.B, transfer func(rdma.Queue, rdma.MachineID, rdma.Key, uint64, []byte, uint64) (bool, error)) {
	for _, size := range []int{8, 64, 128, 256, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			q, _, _ := pair(b)
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
