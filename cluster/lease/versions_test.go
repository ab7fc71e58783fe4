//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
)

// Machines exchange leases if they have a version of the protocol in common. The next version does
// so with this one, and with the version that does not state its range.
func TestThreadVersions(t *testing.T) {
	cluster := rand.Uint64()
	var atCM noticed
	start := func(m rdma.MachineID, lowest, highest protocol.Version) Keeper {
		k, err := NewThread(cluster, peer(m), Config{Length: time.Second, Clock: clock.System{}, Expired: atCM.add, Speaks: protocol.Range{Min: lowest, Max: highest}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { k.Close() })
		return k
	}
	cm, next, first, far := start(0, 1, 2), start(1, 2, 3), start(2, 1, 1), start(3, 3, 4)
	for _, k := range []Keeper{cm, next, first, far} {
		k.Configure(0, peers(0, 1, 2, 3))
	}
	eventually(t, "the next version has a lease", next.Valid)
	eventually(t, "the first version has a lease", first.Valid)
	eventually(t, "the CM suspects who speaks nothing that it does", func() bool { return atCM.has(3) })
	if far.Valid() || atCM.has(1) || atCM.has(2) {
		t.Error("versions 1 to 2 and 3 to 4 exchange leases, or others do not")
	}
}
