package tcp

import "github.com/farmsql/farmsql/rdma/hosts"

// After the reply, a connection for keys has:
//
//	keysOfDatagrams:  | key's number 8 | key 32 |
//	keysOfLine:       | key's number 8 | key 16 |
const (
	magic  = 0x74637266 // "frct"
	format = 1          // the format of everything that this package sends

	keyBytes = 32
)

var protocol = hosts.Protocol{Magic: magic, Format: format}

// The purposes of connections.
const (
	operations uint8 = iota
	keysOfDatagrams
	keysOfLine // unknown to versions without a line
)
