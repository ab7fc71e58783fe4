package doctor

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// checkListening tries to listen for clients.
func checkListening(h Host, p Plan) Finding {
	err := h.Listen(p.Listen)
	const fails = "serve does not start"
	switch {
	case err == nil:
		return good(p.Listen + " is free")
	case errors.Is(err, syscall.EADDRINUSE):
		return h.taken(p.Listen, "--listen")
	case errors.Is(err, syscall.EACCES):
		return problem(p.Listen+" is for root only", fails,
			"choose --listen with a port from 1024 on, or sysctl -w net.ipv4.ip_unprivileged_port_start=PORT (setcap only without --cluster)")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return problem(p.Listen+" is no address of this computer", fails, "choose an address that ip address shows, or 0.0.0.0 for all of them")
	}
	return problem(fmt.Sprintf("%s: %v", p.Listen, err), fails, "choose another --listen")
}

// taken returns the finding for an address of a flag at which somebody listens.
func (h Host) taken(address, flag string) Finding {
	holder := "a process that only root can find out (ss -tlnp)"
	_, text, _ := net.SplitHostPort(address) // the address is valid: only the other process prevents listening
	if port, err := strconv.Atoi(text); err == nil {
		if process, isKnown := h.ListenerOf(port); isKnown {
			holder = fmt.Sprintf("process %d (%s)", process.ID, process.Name)
			if process.Name == "farmsql" {
				return warning(address+" is in use by "+holder, "a second server cannot have this address", "nothing, if that is the server in question; otherwise choose another "+flag)
			}
		}
	}
	return problem(address+" is in use by "+holder, "serve does not start", "stop that process, or choose another "+flag)
}

// checkFirewall reports that firewalls are not examined, because only root may read their rules.
func checkFirewall(_ Host, p Plan) Finding {
	host, _, err := net.SplitHostPort(p.Listen)
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback())) {
		return good("nobody connects to " + p.Listen + " from outside")
	}
	return notExamined("only root may read the rules of a firewall: nft list ruleset, or iptables -L")
}
