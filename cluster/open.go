package cluster

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrURL matches every error in the address of a store.
var ErrURL = errors.New("cluster: bad address of the configuration (--cluster)")

// Open returns the store that url names:
//
//	file://PATH                          a file, for machines of one host
//	zk://HOST:PORT,HOST:PORT,.../PATH    a znode of a ZooKeeper ensemble
//
// It fails with ErrURL if url is neither, and with ErrUnreachable if no server of
// the ensemble answers within a few seconds.
func Open(url string) (Store, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	switch {
	case scheme == "file" && rest != "":
		return NewFileStore(rest), nil
	case scheme == "zk" && rest != "":
		servers, path, err := splitZooKeeper(url, rest)
		if err != nil {
			return nil, err
		}
		return openZooKeeper(url, servers, path)
	}
	if scheme, _, _ := strings.Cut(url, ":"); scheme == "raft" {
		return nil, fmt.Errorf("%w: %q: the machines keep it themselves, and only those that run know it", ErrURL, url)
	}
	return nil, fmt.Errorf("%w: %q; it is file://PATH or zk://HOST:PORT,HOST:PORT/PATH", ErrURL, url)
}

// zooKeeperPort is ZooKeeper's default port.
const zooKeeperPort = "2181"

// splitZooKeeper splits HOST:PORT,HOST/PATH.
func splitZooKeeper(url, rest string) (servers []string, path string, err error) {
	hosts, path, _ := strings.Cut(rest, "/")
	for _, part := range strings.Split(path, "/") {
		if part == "" || part == "." || part == ".." || part == "zookeeper" {
			return nil, "", fmt.Errorf("%w: %q needs the path of a znode after the servers, like /farmsql", ErrURL, url)
		}
	}
	for _, server := range strings.Split(hosts, ",") {
		if !strings.Contains(server, ":") {
			server = net.JoinHostPort(server, zooKeeperPort)
		}
		if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
			return nil, "", fmt.Errorf("%w: %q: %q is not HOST:PORT", ErrURL, url, server)
		}
		servers = append(servers, server)
	}
	return servers, "/" + path, nil
}
