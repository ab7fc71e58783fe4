package wire

import (
	"io"

	"github.com/dolthub/vitess/go/mysql"
)

// standIn is the statement that the protocol library prepares in place of the client's: the
// library knows less SQL than the engine.
const standIn = "SELECT 1"

// keepText keeps the statement that p prepares for handler.ComPrepare, and replaces it in p by
// standIn. Statements above the limit, or longer than a packet, are left to the library.
func (c *conn) keepText(p []byte) (bool, error) {
	length := packetLength(p)
	if c.preparing != nil || length == packetBytesMax || int64(length) > c.meter.limit {
		return false, nil
	}
	whole := make([]byte, length)
	have := copy(whole, p[packetHeaderBytes:])
	have += copy(whole[have:], c.ahead)
	c.ahead = c.ahead[have-len(p)+packetHeaderBytes:] // without the bytes just copied
	if _, err := io.ReadFull(c.stream(), whole[have:]); err != nil {
		return false, err
	}
	text := string(whole[1:])
	c.preparing = &text
	c.counts.add(bytesReceived, uint64(max(0, len(text)-len(standIn))))
	c.ahead = append(packet(0, append([]byte{mysql.ComPrepare}, standIn...)), c.ahead...)
	return true, nil
}

// takeText returns the statement that keepText has kept; query if there is none.
func (c *conn) takeText(query string) string {
	if c == nil || c.preparing == nil {
		return query
	}
	text := *c.preparing
	c.preparing = nil
	return text
}
