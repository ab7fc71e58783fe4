package peerport

import (
	"fmt"
	"net"
)

// CheckHost returns an error if the name in an address, HOST:PORT, leads only to this host:
// other hosts cannot reach a machine that listens there. Debian and Ubuntu have the host's own
// name at 127.0.1.1 in /etc/hosts. It is no error if HOST is an address, localhost, or unknown.
func CheckHost(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" || net.ParseIP(host) != nil {
		return nil
	}
	at, err := net.ResolveTCPAddr("tcp", address) // resolves the name as a listener does
	if err != nil || !at.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is %s on this host, where other hosts do not reach it: remove that line from /etc/hosts, or give the address that they reach", host, at.IP)
}
