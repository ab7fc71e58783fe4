package wire

import (
	"io"

	"github.com/dolthub/vitess/go/mysql"
)

// standIn is what the protocol library is given to prepare, which knows less SQL than the
// engine does.
const standIn = "SELECT 1"

// keepText keeps the statement that p prepares, for the engine (handler.ComPrepare), and
// replaces it in p by the stand-in. Statements that are too long, or longer than a packet, are
// left to the library.
func (c *conn) keepText(p []byte) (bool, error) {
	length := packetLength(p)
	if c.preparing != nil || length == packetBytesMax || int64(length) > c.meter.limit {
		return false, nil
	}
	whole := make([]byte, length)
	have := copy(whole, p[packetHeaderBytes:])
	have += copy(whole[have:], c.ahead)
	c.ahead = c.ahead[have-len(p)+packetHeaderBytes:]
	if _, err := io.ReadFull(c.stream(), whole[have:]); err != nil {
		return false, err
	}
	text := string(whole[1:])
	c.preparing = &text
	c.counts.add(bytesReceived, uint64(max(0, len(text)-len(standIn))))
	c.ahead = append(packet(0, append([]byte{mysql.ComPrepare}, standIn...)), c.ahead...)
	return true, nil
}

// takeText returns the statement that was kept.
func (c *conn) takeText(query string) string {
	if c == nil || c.preparing == nil {
		return query
	}
	text := *c.preparing
	c.preparing = nil
	return text
}
