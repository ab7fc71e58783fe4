package doctor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// checkIssuer tries to reach the machine that admits others, as a machine that joins does. Of the
// datagram it learns only whether it is refused: the other machine does not answer datagrams of
// strangers.
func checkIssuer(h Host, p Plan) Finding {
	const fails = "the machine cannot join"
	var unknown *net.DNSError
	err := h.Reach(p.Issuer)
	switch {
	case errors.As(err, &unknown):
		return problem(fmt.Sprintf("%s: %v", p.Issuer, err), fails, "add the name to DNS, or to /etc/hosts")
	case err != nil:
		return problem(fmt.Sprintf("%s is not reached over TCP: %v", p.Issuer, err), fails,
			"start the first machine, whose token this is, and let TCP through the firewalls of both hosts; if the name leads to a loopback address there, see --advertise")
	}
	if err := h.ReachPacket(p.Issuer); err != nil {
		return problem(fmt.Sprintf("%s refuses datagrams, though it answers over TCP: %v", p.Issuer, err), fails,
			"let UDP through the firewalls, in both directions and with the number of the TCP port")
	}
	return good(p.Issuer + " answers over TCP, and refuses no datagrams; where a firewall drops them, serve logs that none arrives")
}

// reachMax is how long the other machine may take to accept a connection. refuseMax is how long it
// may take to refuse a datagram: a round trip to the other side of the world.
const (
	reachMax  = 3 * time.Second
	refuseMax = 300 * time.Millisecond
)

func reach(address string) error {
	c, err := net.DialTimeout("tcp", address, reachMax)
	if err != nil {
		return err
	}
	return c.Close()
}

// reachPacket sends a datagram that no machine accepts as one of its cluster. It waits as long as a refusal may take.
func reachPacket(address string) error {
	c, err := net.DialTimeout("udp", address, reachMax)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte{0}); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(refuseMax)); err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}
