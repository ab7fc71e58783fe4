package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"

	"github.com/farmsql/farmsql/sql/myerr"
)

// Requests that the protocol library does not know.
const (
	comRefresh     = 0x07
	comShutdown    = 0x08
	comStatistics  = 0x09
	comProcessInfo = 0x0a
	comProcessKill = 0x0c
)

// A reply is the packet that answers a request, and a function to call once it is sent.
type reply struct {
	packet []byte
	then   func()
}

// intercept handles the request at the start of p if the protocol library cannot answer it, at
// all or in the present state, and reports whether it has. The library then gets the next
// request, or a request by which intercept has replaced this one.
func (c *conn) intercept(p []byte) (bool, error) {
	isRequest := c.isIn && !c.sendsFile && c.meter.isBetween()
	if !isRequest || c.command == nil || len(p) <= packetHeaderBytes || p[3] != 0 {
		return false, nil
	}
	if p[packetHeaderBytes] == mysql.ComPrepare {
		return c.keepText(p)
	}
	if len(p) != packetHeaderBytes+packetLength(p) {
		return false, nil
	}
	if c.answers(p) {
		return true, nil
	}
	query := queryFor(p[packetHeaderBytes:])
	if query == "" {
		return false, nil
	}
	c.ahead = append(packet(0, append([]byte{mysql.ComQuery}, query...)), c.ahead...)
	return true, nil
}

// queryFor returns the statement that replaces an outdated request, or an empty text.
func queryFor(request []byte) string {
	switch {
	case request[0] == comProcessInfo && len(request) == 1:
		return "SHOW PROCESSLIST"
	case request[0] == comProcessKill && len(request) == 5:
		return fmt.Sprintf("KILL %d", binary.LittleEndian.Uint32(request[1:]))
	case request[0] == comRefresh && len(request) == 2:
		return refreshes[request[1]]
	}
	return ""
}

// refreshes are the statements for COM_REFRESH's flags, one at a time.
var refreshes = map[byte]string{1: "FLUSH PRIVILEGES", 2: "FLUSH LOGS", 4: "FLUSH TABLES", 16: "FLUSH STATUS"}

// answers handles a request of one byte, with at most one more byte after it, and reports whether
// command has answered the request.
func (c *conn) answers(p []byte) bool {
	if len(p) > packetHeaderBytes+2 {
		return false
	}
	answer := c.command(p[packetHeaderBytes])
	if answer == nil {
		return false
	}
	c.send(answer.packet)
	if answer.then != nil {
		answer.then()
	}
	return true
}

// command answers COM_STATISTICS and COM_SHUTDOWN, which the protocol library does not answer.
// While clients cannot be served, it also answers COM_PING, to which the library would answer OK.
func (h *handler) command(c *mysql.Conn, request byte) *reply {
	switch request {
	case mysql.ComPing:
		if accepted := connOf(c); accepted != nil && accepted.source == nil {
			return nil
		}
		if err := h.cfg.available(); err != nil {
			return refusal(err)
		}
	case comStatistics:
		return &reply{packet: packet(1, []byte(h.statistics()))}
	case comShutdown:
		if err := h.mayShutDown(c); err != nil {
			return refusal(err)
		}
		return &reply{packet: okPacket(c.StatusFlags), then: h.cfg.Shutdown}
	}
	return nil
}

func refusal(err *mysql.SQLError) *reply {
	return &reply{packet: errorPacket(1, uint16(err.Num), err.State, err.Message)}
}

// packet frames a short body.
func packet(sequence byte, body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), sequence}, body...)
}

// okPacket returns the answer to a request that has succeeded and changed nothing.
func okPacket(status uint16) []byte {
	return packet(1, []byte{0, 0, 0, byte(status), byte(status >> 8), 0, 0})
}

// mayShutDown returns an error if a client may not end the server.
func (h *handler) mayShutDown(c *mysql.Conn) *mysql.SQLError {
	if !h.hasPrivilege(c, gms.PrivilegeType_Shutdown) && !h.hasPrivilege(c, gms.PrivilegeType_Super) {
		return myerr.AccessDenied.New("SHUTDOWN")
	}
	if h.cfg.Shutdown == nil {
		return myerr.NoShutdown.New()
	}
	return nil
}

// hasPrivilege reports whether the user of a connection has a global privilege.
func (h *handler) hasPrivilege(c *mysql.Conn, p gms.PrivilegeType) bool {
	ctx := h.newContext(context.Background(), gms.WithSession(stateOf(c).engine))
	return h.gms.Analyzer.Catalog.MySQLDb.UserHasPrivileges(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, p))
}

// isShutdown reports whether a statement is SHUTDOWN, which the parser does not know.
func isShutdown(text string) bool {
	return len(text) == len("shutdown") && strings.EqualFold(text, "shutdown")
}

// statistics returns the answer to COM_STATISTICS, with those of MySQL's figures that this
// server counts.
func (h *handler) statistics() string {
	uptime := max(1, int64(h.clock.Now().Sub(h.started)/time.Second))
	all := h.mux.counts(func(*conn) bool { return true }, true)
	return fmt.Sprintf("Uptime: %d  Threads: %d  Questions: %d  Slow queries: %d  Queries per second avg: %.3f",
		uptime, h.mux.count(), all[questions], all[slowQueries], float64(all[questions])/float64(uptime))
}

// available returns nil if clients can be served, and otherwise the error for them.
func (c Config) available() *mysql.SQLError {
	if c.Available == nil {
		return nil
	}
	return myerr.Of(c.Available(context.Background()))
}

// shutDown executes the statement SHUTDOWN.
func (h *handler) shutDown(c *mysql.Conn, callback mysql.ResultSpoolFn) error {
	if err := h.mayShutDown(c); err != nil {
		return err
	}
	if err := callback(&sqltypes.Result{}, false); err != nil {
		return err
	}
	h.cfg.Shutdown()
	return nil
}
