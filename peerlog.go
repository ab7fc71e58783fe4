package farmsql

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
)

// peerLogEvery is the least time between two lines about one machine that cannot be reached, and
// between two about connections that are refused.
const peerLogEvery = 10 * time.Second

// refusals is the key under which a peerLog counts refused connections, where other keys are
// machines.
const refusals = rdma.MachineID(machineIDMax + 1)

// pinning is the key under which a peerLog counts memory that the card cannot register.
const pinning = refusals + 1

// A peerLog logs what goes wrong between this machine and others. It limits the number of lines,
// because the same happens again and again: strangers try to connect, and machines that are down
// are tried often. It is safe for concurrent use.
type peerLog struct {
	log *slog.Logger
	now func() time.Time
	mu  struct {
		lockrank.Mutex[lockrank.Leaf]
		entries map[rdma.MachineID]*peerLogEntry
	}
}

// A peerLogEntry is about one key: a machine, refusals or pinning.
type peerLogEntry struct {
	logged time.Time
	silent int // the events since then that were not logged
}

// due reports whether a line about m may be logged now. more is the number of events since the last
// line that were not logged.
func (l *peerLog) due(m rdma.MachineID) (more int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.entries == nil {
		l.mu.entries = make(map[rdma.MachineID]*peerLogEntry)
	}
	now, e := l.now(), l.mu.entries[m]
	if e == nil {
		l.mu.entries[m] = &peerLogEntry{logged: now}
		return 0, true
	}
	if now.Sub(e.logged) < peerLogEvery {
		e.silent++
		return 0, false
	}
	more, e.logged, e.silent = e.silent, now, 0
	return more, true
}

// refused is tcp.Config.Refused.
func (l *peerLog) refused(from net.Addr, reason error) {
	if more, ok := l.due(refusals); ok {
		l.log.Warn("connection from another host refused", withMend(reason, "from", from.String(), "reason", reason, "more since the last line", more)...)
	}
}

// unreached is tcp.Config.Unreached.
func (l *peerLog) unreached(m rdma.MachineID, address string, reason error) {
	if more, ok := l.due(m); ok {
		l.log.Warn("machine cannot be reached", withMend(reason, "peer", m, "address", address, "reason", reason, "more since the last line", more)...)
	}
}

// silent is tcp.Config.Silent. Without datagrams no machine becomes or stays a member, so no
// other part of this machine would report it.
func (l *peerLog) silent(m rdma.MachineID, address netip.AddrPort) {
	if more, ok := l.due(m); ok {
		l.log.Warn("no datagram of a machine arrives, though it answers over TCP: let UDP through the firewalls, in both directions and with the number of the TCP port",
			"peer", m, "address", address, "more since the last line", more)
	}
}

// withMend adds to the attributes of a line how to mend the reason, if the reason is a
// certificate: the reason does not say whose certificate.
func withMend(reason error, attributes ...any) []any {
	const mend = ", or set the clocks of the hosts if they differ"
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(reason, &invalid) && invalid.Reason == x509.Expired:
		return append(attributes, "mend", "give the machine there another certificate (--peer-cert) and restart it"+mend)
	// crypto/tls has no errors to compare with for what the other side says. It says "expired"
	// also of a certificate that is not valid yet, and "bad" if the other side is the one that
	// has connected.
	case strings.Contains(reason.Error(), "remote error: tls: expired certificate"), strings.Contains(reason.Error(), "remote error: tls: bad certificate"):
		return append(attributes, "mend", "the log of the other host says what is wrong with this machine's certificate (--peer-cert): give this machine another one and restart it"+mend)
	}
	return attributes
}

// unpinned is verbs.Config.Unpinned.
func (l *peerLog) unpinned(reason error) {
	if more, ok := l.due(pinning); ok {
		l.log.Error("the card cannot register memory that another machine needs, whose connection breaks", "reason", reason, "more", more)
	}
}
