package tcp

import (
	"crypto/tls"
	"fmt"
	"os"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// BenchmarkOperations posts READs and WRITEs over the loopback interface, as many at a time as a
// worker may have under way, and waits for them as a worker does: until its bell rings.
func BenchmarkOperations(b *testing.B) {
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": certificates(b)} {
		for _, together := range []int{1, 16, 128} {
			for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
				b.Run(fmt.Sprintf("%s/%v/together=%d", name, op, together), func(b *testing.B) { benchmarkOperations(b, config, op, together) })
			}
		}
	}
}

func benchmarkOperations(b *testing.B, config *tls.Config, op rdma.Op, together int) {
	w := newBenchWorker(b, config, 1)
	buf := make([]byte, 64*together)
	b.ReportAllocs()
	for n := 0; n < b.N; n += together {
		for i := range together {
			part := buf[64*i : 64*i+64]
			var err error
			if op == rdma.OpRead {
				_, err = w.q.Read(1, 5, 0, part, 1)
			} else {
				_, err = w.q.Write(1, 5, 0, part, 1)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		w.q.Flush()
		w.await(b, together)
	}
}

// BenchmarkBatch posts what a commit posts at most: to each machine 8 writes, of which nobody awaits the
// answer, and one that rings. It waits for the latter. syscalls/op are calls of write of both ends.
func BenchmarkBatch(b *testing.B) {
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": certificates(b)} {
		for _, machines := range []int{1, 3} {
			b.Run(fmt.Sprintf("%s/machines=%d", name, machines), func(b *testing.B) { benchmarkBatch(b, config, machines) })
		}
	}
}

func benchmarkBatch(b *testing.B, config *tls.Config, machines int) {
	w := newBenchWorker(b, config, machines)
	buf := make([]byte, 256)
	b.ReportAllocs()
	before := writeCalls(b)
	for b.Loop() {
		for range 8 {
			for to := range machines {
				if _, err := w.q.Write(rdma.MachineID(to+1), 5, 0, buf, rdma.Unsignalled); err != nil {
					b.Fatal(err)
				}
			}
		}
		for to := range machines {
			if _, err := w.q.WriteRing(rdma.MachineID(to+1), 5, 0, buf, 1); err != nil {
				b.Fatal(err)
			}
		}
		w.q.Flush()
		w.await(b, machines)
	}
	b.ReportMetric(float64(writeCalls(b)-before)/float64(b.N), "syscalls/op")
}

// writeCalls returns how often this process has called write, and what is like it.
func writeCalls(b *testing.B) (n int) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	var read, written, reads int
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d", &read, &written, &reads, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// A benchWorker is a worker with peers that have 4096 bytes of memory under key 5.
type benchWorker struct {
	q    rdma.Queue
	bell chan struct{}
	cs   [128]rdma.Completion
}

func newBenchWorker(b *testing.B, config *tls.Config, peers int) *benchWorker {
	b.Helper()
	f := newFabric(config)
	join := func(m rdma.MachineID, bell func()) (rdma.NIC, rdma.Queue) {
		nic, err := f.Join(m)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = nic.Close() })
		q, err := nic.Open(0, bell)
		if err != nil {
			b.Fatal(err)
		}
		return nic, q
	}
	w := &benchWorker{bell: make(chan struct{}, 1)}
	for i := range peers {
		nic, _ := join(rdma.MachineID(i+1), nil)
		if err := nic.Register(5, nvram.NewMemory(4096)); err != nil {
			b.Fatal(err)
		}
	}
	_, w.q = join(100, func() {
		select {
		case w.bell <- struct{}{}:
		default:
		}
	})
	return w
}

// await waits for n completions.
func (w *benchWorker) await(b *testing.B, n int) {
	for n > 0 {
		got := w.q.Poll(w.cs[:])
		for _, c := range w.cs[:got] {
			if c.Err != nil {
				b.Fatal(c.Err)
			}
		}
		if n -= got; got == 0 {
			<-w.bell
		}
	}
}
