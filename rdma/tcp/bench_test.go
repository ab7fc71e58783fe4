package tcp

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// BenchmarkOperations posts READs and WRITEs over the loopback interface, as many at a time as a
// worker may have under way, and waits for them as a worker does: until its bell rings.
func BenchmarkOperations(b *testing.B) {
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": certificates(b, "127.0.0.1")} {
		for _, together := range []int{1, 16, 128} {
			for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
				b.Run(fmt.Sprintf("%s/%v/together=%d", name, op, together), func(b *testing.B) { benchmark(b, config, op, together) })
			}
		}
	}
}

func benchmark(b *testing.B, config *tls.Config, op rdma.Op, together int) {
	f := newFabric(config)
	to, err := f.Join(1)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	from, err := f.Join(2)
	if err != nil {
		b.Fatal(err)
	}
	defer from.Close()
	if err := to.Register(5, nvram.NewMemory(4096)); err != nil {
		b.Fatal(err)
	}
	if _, err := to.Open(0, nil); err != nil {
		b.Fatal(err)
	}
	bell := make(chan struct{}, 1)
	q, err := from.Open(0, func() {
		select {
		case bell <- struct{}{}:
		default:
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 64*together)
	cs := make([]rdma.Completion, together)
	b.ReportAllocs()
	for n := 0; n < b.N; n += together {
		for i := range together {
			part := buf[64*i : 64*i+64]
			if op == rdma.OpRead {
				_, err = q.Read(1, 5, 0, part, 1)
			} else {
				_, err = q.Write(1, 5, 0, part, 1)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		q.Flush()
		for left := together; left > 0; {
			got := q.Poll(cs)
			for _, c := range cs[:got] {
				if c.Err != nil {
					b.Fatal(c.Err)
				}
			}
			if left -= got; got == 0 {
				<-bell
			}
		}
	}
}
