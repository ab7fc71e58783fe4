package raftstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

const (
	// patienceDefault is Config.Patience if that is not set.
	patienceDefault = 5 * time.Second
	// tickDefault is the unit in which the library counts time, and this package too.
	tickDefault = 50 * time.Millisecond
)

// A Config says how a machine takes part in the store that its folder was created for.
type Config struct {
	// Folder is where Create has made this machine's part of the store.
	Folder string
	// Listener accepts the connections of the other machines, and of clients. The Store closes
	// it. Connections that are secured already, such as those of a port that several protocols
	// share, stay as they are. But the other side must have shown a certificate that was
	// verified.
	Listener net.Listener
	// Dial connects to the address of another machine, as Founding.Machines has it. It must end
	// when ctx is done. A connection that is secured already stays as it is, like an accepted
	// one.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// TLS secures connections. It has the machine's certificate, and in RootCAs and ClientCAs
	// the authorities that certify the others'. With nil, connections travel in the clear, and
	// anybody who reaches the listener can replace the configuration. The Store copies TLS;
	// NextProtos, if a port is shared, names this protocol alone.
	TLS *tls.Config
	// Authorize, if not nil, decides whether the owner of a certificate may act as machine m of the store. With
	// nil, the owner of any certificate of the authorities may act as any.
	Authorize func(m rdma.MachineID, shown tls.ConnectionState) error
	// Refused, if not nil, is called for each accepted connection that is refused, by several goroutines
	// at once: of strangers, and of machines that were founded otherwise or belong elsewhere.
	Refused func(from net.Addr, reason error)
	// Rival, if not nil, is called when a machine that a Refounding left behind keeps a configuration of its own
	// nevertheless, each time that it is asked.
	Rival func(reason error)
	// Changed, if not nil, is called with the revision of the configuration when the machine has got to know that a
	// later one is kept. It must not call the Store.
	Changed func(revision uint64)
	// Patience bounds Load and CompareAndSwap. Elections take up to a second. If it is 0, it is 5 s.
	Patience time.Duration

	// tick is tickDefault, except in tests.
	tick time.Duration
}

// The store's periods, in ticks.
const (
	heartbeatTicks = 4
	electionTicks  = 10   // a follower that hears nothing for so long, or up to twice as long, stands for election
	retryTicks     = 10   // when a request without an answer is sent again
	redialTicks    = 5    // how long to wait after a connection has failed
	idleTicks      = 1200 // a client's connection is closed after so long without a call
	leftTicks      = 60   // how long a machine that was left behind may take to answer
	watchTicks     = 200  // how often such machines are asked
	silenceTicks   = 100  // how long a peer may leave something unanswered before its connection is given up
)

// complete checks c and sets what has a default.
func (c *Config) complete() error {
	switch {
	case c.Listener == nil || c.Dial == nil:
		return errors.New("cluster: the configuration store needs a listener and a dialer")
	case c.Patience < 0:
		return fmt.Errorf("cluster: the configuration store has a patience of %v", c.Patience)
	}
	if err := checkTLS(c.TLS); err != nil {
		return err
	}
	if c.Patience == 0 {
		c.Patience = patienceDefault
	}
	if c.tick == 0 {
		c.tick = tickDefault
	}
	return nil
}

// after returns how long a number of ticks is.
func (c *Config) after(ticks int) time.Duration { return time.Duration(ticks) * c.tick }
