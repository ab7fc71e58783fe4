//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"net"
	"strconv"
)

// scopeOf returns the number of an IPv6 address's zone, which is an interface's name or number; 0 if
// there is none.
func scopeOf(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(zone, 10, 32)
	return uint32(n)
}
