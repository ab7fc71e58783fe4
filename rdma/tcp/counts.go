package tcp

import (
	"net"

	"github.com/farmsql/farmsql/rdma"
)

var _ rdma.Counter = (*NIC)(nil)

// Counts implements rdma.Counter. The greetings of connections, and datagrams, are not counted: a commit has none.
func (nic *NIC) Counts() rdma.Counts { return nic.counts.Sum() }

// answers count the writes of an agent. With TLS, a long one is several system calls.
type answers struct {
	net.Conn
	counts *rdma.Counters
}

func (a answers) Write(b []byte) (int, error) {
	a.counts.Answers.Add(1)
	return a.Conn.Write(b)
}
