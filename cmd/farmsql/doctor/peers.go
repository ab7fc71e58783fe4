package doctor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
)

// checkPeers tries to listen for the other machines, on TCP and, unless they use RDMA cards, on UDP.
func checkPeers(h Host, p Plan) Finding {
	const fails = "serve does not start"
	tcp := h.Listen(p.Advertise)
	err, free := tcp, " is free, on TCP; the firewall must let that through"
	if !p.IsVerbs {
		err, free = errors.Join(tcp, h.ListenPacket(p.Advertise)), " is free, on TCP and UDP; the firewall must let both through"
	}
	var unknown *net.DNSError
	switch unreachable := h.CheckHost(p.Advertise); {
	case unreachable != nil:
		return problem(unreachable.Error(), fails, "correct /etc/hosts, or give --advertise the address that the others reach")
	case err == nil:
		return good(p.Advertise + free)
	case errors.As(err, &unknown):
		return problem(fmt.Sprintf("%s: %v", p.Advertise, err), fails, "add the name to DNS, or to /etc/hosts of all hosts, or give --advertise an address")
	case errors.Is(tcp, syscall.EADDRINUSE):
		return h.taken(p.Advertise, "--advertise")
	case errors.Is(err, syscall.EADDRINUSE):
		return problem(p.Advertise+" is in use on UDP", fails, "choose --advertise with another port, or stop the process that ss -ulnp shows")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return problem(p.Advertise+" is no address of this computer", fails,
			"give --advertise an address that ip address shows, or a name that is one's here: where an address is only forwarded to this computer, no machine can listen")
	}
	return problem(fmt.Sprintf("%s: %v", p.Advertise, err), fails, "choose another --advertise")
}

// checkIdentity checks whether the folder with the machine's identity, and its votes, survives a power failure.
func checkIdentity(h Host, p Plan) Finding {
	if p.Identity == "" {
		return good("flags say who the machine is, and others keep the configuration")
	}
	m, _, failed := h.mountOf(p.Identity)
	if failed != nil {
		return *failed
	}
	found := fmt.Sprintf("%s is on %s (%s)", p.Identity, m.Point, m.Type)
	switch {
	case slices.Contains(inMemory, m.Type):
		return warning(found+": memory", "when the computer restarts the machine has forgotten who it is: if a majority of those that keep the configuration has, that is lost, and the data with it",
			"--saves FOLDER, on a disk, at the first start")
	case slices.Contains(layered, m.Type):
		return warning(found, "the machine's identity, and its part of the configuration, are gone with the container", "mount a volume there (docker: --volume)")
	}
	return good(found)
}

// checkTimeOfDay checks whether a program keeps the host's time of day correct.
func checkTimeOfDay(h Host, _ Plan) Finding {
	synchronised, err := h.IsSynchronised()
	switch {
	case err != nil:
		return notExamined(err.Error())
	case synchronised:
		return good("the kernel says that the clock is synchronised")
	}
	return warning("the kernel says that nothing synchronises the clock",
		"if it is wrong, certificates of other machines are refused as expired or not valid yet, and times in logs of several hosts cannot be compared",
		"timedatectl set-ntp true, or install chrony (in a container: on its host)")
}
