package testnet

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/rdma/rdmatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConformanceOnABadNetwork runs the suite of all providers with all that a network does to bytes and datagrams
// short of breaking connections, which the suite does itself.
func TestConformanceOnABadNetwork(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T) rdmatest.Fabric { return New(t, BadTLS) })
}
