package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// A machine that answers over TCP, and of which no datagram comes, is reported, again and again.
func TestDatagramsBlocked(t *testing.T) {
	f := newFabric(nil)
	joined, err := f.Join(2)
	if err != nil {
		t.Fatal(err)
	}
	two := joined.(*NIC)
	defer func() { _ = two.Close() }() // an error: its socket is closed
	if err := two.mail.socket.Close(); err != nil {
		t.Fatal(err)
	}
	reports := make(chan netip.AddrPort, 1)
	cfg := f.config(1)
	cfg.silent = time.Millisecond
	cfg.Silent = func(m rdma.MachineID, address netip.AddrPort) {
		if m != 2 {
			t.Errorf("machine %d is silent", m)
		}
		select {
		case reports <- address:
		default:
		}
	}
	one, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, one)
	for range 2 {
		var at netip.AddrPort
		until(t, func() bool {
			if err := one.Datagram(2, []byte("hello")); err != nil {
				t.Fatal(err)
			}
			select {
			case at = <-reports:
				return true
			default:
				return false
			}
		}, func() any { return "nobody says that machine 2 is silent" })
		if at.String() != two.Address() {
			t.Errorf("at %v, want %v", at, two.Address())
		}
	}
}

// A machine is silent if it has had enough time and datagrams to answer, and has not.
func TestIsSilent(t *testing.T) {
	f := newFabric(nil)
	nic := f.serving(t, 1)
	defer closeAll(t, nic)
	m := nic.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heardLocked(2).Store(7)
	long := time.Now().Add(-silentAfter - time.Second)
	for name, c := range map[string]struct {
		sealer
		want bool
	}{
		"silent":         {sealer{sent: silentLeast, since: long, heard: 7}, true},
		"has answered":   {sealer{sent: silentLeast, since: long, heard: 6}, false},
		"only a notice":  {sealer{sent: silentLeast - 1, since: long, heard: 7}, false},
		"only just told": {sealer{sent: silentLeast, since: time.Now(), heard: 7}, false},
	} {
		if got := m.isSilentLocked(2, &c.sealer); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
