package wire

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dolthub/go-mysql-server/memory"
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
)

func TestLocalAndNetworkShareOneServer(t *testing.T) {
	s := startServer(t, Config{})
	local, remote := s.openLocal(t), s.open(t, "")
	mustExec(t, local, "create table t (a int primary key)", "insert into t values (7)")
	var a int
	if err := remote.QueryRow("select a from t").Scan(&a); err != nil || a != 7 {
		t.Fatal(a, err)
	}
	var user string
	if err := local.QueryRow("select current_user()").Scan(&user); err != nil || user != "farmsql.local@localhost" {
		t.Fatal(user, err)
	}
	var ids [2]int
	for i, db := range []*stdsql.DB{local, remote} {
		if err := db.QueryRow("select connection_id()").Scan(&ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	if ids[0] == ids[1] {
		t.Fatalf("two connections with id %d", ids[0])
	}
}

// Clients are dealt out to the engines of several machines, which know the same
// users and each other's connections.
func TestSeveralEngines(t *testing.T) {
	provider := memory.NewDBProvider(memory.NewDatabase("test"))
	sc := &script{}
	var used [3]atomic.Int32
	var engines []Engine
	for i := range used {
		e := newTestEngine(t, provider, sc)
		build := e.NewSession
		e.NewSession = func(ctx context.Context, c *mysql.Conn, addr string) (gms.Session, Session, error) {
			used[i].Add(1)
			return build(ctx, c, addr)
		}
		engines = append(engines, e)
	}
	s := startEngines(t, Config{}, sc, engines...)
	mustExec(t, s.open(t, ""), "create user u@localhost identified by 'p'", "grant all on *.* to u@localhost")
	ids := map[int]*stdsql.Conn{}
	for range 9 {
		db, err := stdsql.Open("mysql", fmt.Sprintf("u:p@tcp(%s)/test", s.addr))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var id int
		if err := c.QueryRowContext(t.Context(), "select connection_id()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		if ids[id] != nil {
			t.Fatalf("id %d twice", id)
		}
		ids[id] = c
	}
	for i := range used {
		if n := used[i].Load(); n < 2 {
			t.Errorf("engine %d got %d of 10 clients", i, n)
		}
	}
	concurrently(t, ids, "select 1")
	killer := s.open(t, "")
	for id, c := range ids {
		mustExec(t, killer, fmt.Sprintf("kill %d", id))
		eventually(t, "the connection is gone", func() bool { return c.PingContext(context.Background()) != nil })
	}
}

// concurrently runs the query many times on every connection. The engines'
// statements meet in the process list, under different numbers.
func concurrently(t *testing.T, conns map[int]*stdsql.Conn, query string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			for range 50 {
				if _, err := c.ExecContext(t.Context(), query); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// The program that has the database open can log in even if root was dropped.
func TestLocalNeedsNoRoot(t *testing.T) {
	s := startServer(t, Config{})
	local := s.openLocal(t)
	mustExec(t, local, "drop user root@localhost", "create table t (a int)", "insert into t values (1)")
	wantError(t, s.open(t, "").Ping(), 1045, "28000", "Access denied")
}

func TestVariablesTellTheSettings(t *testing.T) {
	s := startServer(t, Config{MaxConnections: 77, MaxPacketBytes: 1 << 20})
	db := s.openLocal(t)
	for name, want := range map[string]string{
		"max_connections": "77", "max_allowed_packet": "1048576", "version_comment": "farmsql",
	} {
		var k, v string
		if err := db.QueryRow("show variables like '"+name+"'").Scan(&k, &v); err != nil || v != want {
			t.Errorf("%s = %q (%v), want %q", name, v, err, want)
		}
	}
}

func TestSlotIsFreedWhenAConnectionEnds(t *testing.T) {
	s := startServer(t, Config{MaxConnections: 1})
	for range 5 {
		db := s.open(t, "")
		eventually(t, "the slot is free again", func() bool { return db.Ping() == nil })
		_ = db.Close()
	}
}

// The limit holds for the sum of a request's packets, wherever the stream is cut.
func TestPacketMeter(t *testing.T) {
	packet := func(n int) []byte {
		p := make([]byte, 4+n)
		binary.LittleEndian.PutUint32(p, uint32(n))
		return p
	}
	// use is a request about a statement, and long1 one of n bytes that sends it long data.
	use := func(command, statement byte) []byte { return []byte{5, 0, 0, 0, command, statement, 0, 0, 0} }
	long1 := func(statement byte, n int) []byte {
		p := packet(n)
		copy(p[4:], use(0x18, statement)[4:])
		return p
	}
	long := append(packet(packetBytesMax), packet(100)...)
	for _, tc := range []struct {
		name   string
		limit  int64
		stream []byte
		ok     bool
	}{
		{"at the limit", 1000, bytes.Repeat(packet(1000), 3), true},
		{"over the limit", 1000, packet(1001), false},
		{"empty packets", 1000, bytes.Repeat(packet(0), 9), true},
		{"continued at the limit", packetBytesMax + 100, append(packet(10), long...), true},
		{"continued over the limit", packetBytesMax + 99, append(packet(10), long...), false},
		{"long data at the limit", 1000, append(long1(1, 500), long1(2, 500)...), true},
		{"long data over the limit", 1000, append(long1(1, 500), long1(2, 501)...), false},
		{"long data in many pieces", 1000, bytes.Repeat(long1(1, 101), 10), false},
		{"long data of two packets", packetBytesMax + 1000, slices.Concat(long1(1, packetBytesMax), packet(600), long1(1, 500)), false},
		{"long data that is used", 1000, bytes.Repeat(append(long1(1, 500), use(0x17, 1)...), 9), true},
		{"long data while another statement is used", 1000, bytes.Repeat(append(long1(1, 500), use(0x17, 2)...), 9), false},
		{"long data that is closed", 1000, bytes.Repeat(append(long1(1, 500), use(0x19, 1)...), 9), true},
		{"long data that is reset", 1000, bytes.Repeat(append(long1(1, 500), 1, 0, 0, 0, 0x1f), 9), true},
	} {
		for _, piece := range []int{1 << 30, 4096, 7} {
			m := packetMeter{limit: tc.limit}
			ok := true
			for rest := tc.stream; len(rest) > 0 && ok; {
				n := min(piece, len(rest))
				ok = m.add(rest[:n])
				rest = rest[n:]
			}
			if ok != tc.ok {
				t.Errorf("%s, in pieces of %d: %v, want %v", tc.name, piece, ok, tc.ok)
			}
		}
	}
}

// A driver learns from the handshake, and from the answer to COM_RESET_CONNECTION, whether
// autocommit is on: one that wants it off sends SET autocommit = 0 only then.
func TestHandshakeAnnouncesAutocommit(t *testing.T) {
	s := startServer(t, Config{})
	admin := s.open(t, "")
	defer func() {
		if _, err := admin.Exec("set global autocommit = 1"); err != nil {
			t.Error(err)
		}
	}()
	for value, want := range map[int]uint16{1: 2, 0: 0} {
		if _, err := admin.Exec(fmt.Sprint("set global autocommit = ", value)); err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		greeting := (&rawClient{Conn: c}).read(t)
		_ = c.Close()
		version := bytes.IndexByte(greeting[1:], 0)
		status := binary.LittleEndian.Uint16(greeting[1+version+1+4+8+1+2+1:])
		if status != want {
			t.Errorf("autocommit %d: status %#04x, want %#04x", value, status, want)
		}
	}
}

func TestHandshakeTimesOut(t *testing.T) {
	s := startServer(t, Config{ConnectTimeout: 50 * time.Millisecond})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatalf("a silent client was not disconnected: %v", err)
	}
}

func TestGarbageDoesNotHurt(t *testing.T) {
	s := startServer(t, Config{ConnectTimeout: time.Second})
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", strings.Repeat("\x00", 64), strings.Repeat("\xff", 100), "\x20\x00\x00\x01"} {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = c.Write([]byte(garbage))
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	if err := s.open(t, "").Ping(); err != nil {
		t.Fatal(err)
	}
}

// Close lets a running statement finish and disconnects idle clients.
func TestCloseDrains(t *testing.T) {
	s := startServer(t, Config{})
	idle, err := s.open(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	busy := s.open(t, "")
	result := make(chan error, 1)
	go func() {
		var v int
		result <- busy.QueryRow("select sleep(0.3)").Scan(&v)
	}()
	eventually(t, "the statement runs", func() bool { return s.running("sleep") })
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Errorf("the running statement failed: %v", err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("closing took %v", took)
	}
	if err := idle.PingContext(t.Context()); err == nil {
		t.Error("an idle connection survived")
	}
	if _, err := s.Dial(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("dial after close: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context(), l); !errors.Is(err, ErrClosed) {
		t.Errorf("serve after close: %v", err)
	}
}

func TestCloseCancelsWhatTakesTooLong(t *testing.T) {
	s := startServer(t, Config{DrainTimeout: 50 * time.Millisecond})
	busy := s.open(t, "")
	result := make(chan error, 1)
	go func() {
		var v int
		result <- busy.QueryRow("select sleep(100)").Scan(&v)
	}()
	eventually(t, "the statement runs", func() bool { return s.running("sleep") })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err == nil {
		t.Error("the statement was not cancelled")
	}
}

func (s *testServer) running(text string) bool {
	for _, p := range s.gms.ProcessList.Processes() {
		if strings.Contains(p.Query, text) {
			return true
		}
	}
	return false
}

// Ending one listener leaves the others' clients alone.
func TestServeContextEndsItsOwnConnections(t *testing.T) {
	s := startServer(t, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	second := &testServer{Server: s.Server, addr: l.Addr().String()}
	stays, err := s.open(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	goes, err := second.open(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer goes.Close()
	cancel()
	if err := <-served; err != nil {
		t.Fatalf("serve: %v", err)
	}
	if err := goes.PingContext(t.Context()); err == nil {
		t.Error("the listener's connection survived")
	}
	if err := stays.PingContext(t.Context()); err != nil {
		t.Errorf("another listener's connection died: %v", err)
	}
}

func TestResetConnectionEndsTheSession(t *testing.T) {
	s := startServer(t, Config{})
	c := dialRaw(t, s.addr)
	c.exec(t, "set @a = 5")
	if got := c.exec(t, "select @a"); !strings.Contains(got, "5") {
		t.Fatalf("got %q", got)
	}
	c.command(t, []byte{0x1f}) // COM_RESET_CONNECTION
	if got := c.exec(t, "select @a"); strings.Contains(got, "5") {
		t.Fatalf("the variable survived: %q", got)
	}
	if got := c.exec(t, "select database()"); !strings.Contains(got, "test") {
		t.Fatalf("the database did not survive: %q", got)
	}
}

// rawClient speaks just enough of the protocol for commands that drivers hide.
type rawClient struct{ net.Conn }

func dialRaw(t *testing.T, addr string) *rawClient {
	t.Helper()
	return dialRawAs(t, addr, "root")
}

func dialRawAs(t *testing.T, addr, user string) *rawClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	r := &rawClient{c}
	r.read(t)
	if _, err := r.Write(loginPacketAs(user)); err != nil {
		t.Fatal(err)
	}
	if p := r.read(t); p[0] != 0 {
		t.Fatalf("login: %q", p)
	}
	return r
}

// loginPacket is the packet with which root logs in, without a password.
func loginPacket() []byte { return loginPacketAs("root") }

func loginPacketAs(user string) []byte {
	const protocol41, connectWithDB, secure, pluginAuth = 0x200, 0x8, 0x8000, 0x80000
	body := binary.LittleEndian.AppendUint32(nil, protocol41|connectWithDB|secure|pluginAuth)
	body = binary.LittleEndian.AppendUint32(body, 1<<24)
	body = append(append(body, 45), make([]byte, 23)...)
	body = append(body, user+"\x00\x00test\x00mysql_native_password\x00"...)
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), 1}, body...)
}

func (r *rawClient) write(t *testing.T, sequence byte, body []byte) {
	t.Helper()
	p := append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), sequence}, body...)
	if _, err := r.Write(p); err != nil {
		t.Fatal(err)
	}
}

func (r *rawClient) read(t *testing.T) []byte {
	t.Helper()
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	if _, err := io.ReadFull(r, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// command sends one command and returns its only packet.
func (r *rawClient) command(t *testing.T, body []byte) []byte {
	t.Helper()
	r.write(t, 0, body)
	p := r.read(t)
	if p[0] == 0xff {
		t.Fatalf("command %#x: %q", body[0], p)
	}
	return p
}

// exec runs a statement and returns its packets in one string.
func (r *rawClient) exec(t *testing.T, query string) string {
	t.Helper()
	first := r.command(t, append([]byte{3}, query...))
	if first[0] == 0 {
		return ""
	}
	var sb strings.Builder
	for eof := 0; eof < 2; {
		p := r.read(t)
		if p[0] == 0xfe && len(p) < 9 {
			eof++
			continue
		}
		if eof == 1 {
			fmt.Fprintf(&sb, "%s\n", p)
		}
	}
	return sb.String()
}

func TestConfigValidate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero config: %v", err)
	}
	for want, c := range map[string]Config{
		"result buffer": {ResultBufferBytes: 1},
		"connections":   {MaxConnections: -1},
		"packets":       {MaxPacketBytes: 2 << 30},
		"timeout":       {DrainTimeout: -1},
		"TLS":           {RequireTLS: true},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
		if _, err := New(c, Engine{}); err == nil {
			t.Errorf("%s: New accepted it", want)
		}
	}
}

// Whatever a client sends, the meter's verdict does not depend on how the bytes
// arrive, and it lets nothing over the limit pass.
func FuzzPacketMeter(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x0e"), uint16(3))
	f.Add(append([]byte{255, 255, 255, 0}, make([]byte, 100)...), uint16(1))
	f.Add([]byte("\x20\x00\x00\x01"), uint16(7))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint16) {
		const limit = 1 << 12
		whole, pieces := packetMeter{limit: limit, shift: 1}, packetMeter{limit: limit, shift: 1}
		once := bytes.Clone(stream)
		want, got := whole.add(once), true
		size := int(piece)%64 + 1
		for rest := stream; len(rest) > 0 && got; {
			n := min(size, len(rest))
			got = pieces.add(rest[:n])
			rest = rest[n:]
		}
		if got != want || got && !bytes.Equal(once, stream) {
			t.Fatalf("in pieces of %d: %v, whole: %v", size, got, want)
		}
		if want && whole.left > limit {
			t.Fatalf("%d bytes to come were accepted", whole.left)
		}
	})
}

// A parameter that is sent in pieces may be as long as a packet, not longer.
func TestLongData(t *testing.T) {
	packet := func(seq byte, kind byte, bytes int) []byte {
		p := make([]byte, 4+bytes)
		p[0], p[1], p[2], p[3], p[4] = byte(bytes), byte(bytes>>8), byte(bytes>>16), seq, kind
		return p
	}
	m := packetMeter{limit: 1000}
	for range 3 {
		for range 2 {
			if !m.add(packet(0, mysql.ComStmtSendLongData, 500)) {
				t.Fatal("1,000 bytes are refused")
			}
		}
		if !m.add(packet(0, mysql.ComStmtExecute, 20)) {
			t.Fatal("what uses the parameter is refused")
		}
	}
	if m.add(packet(0, mysql.ComStmtSendLongData, 900)); m.add(packet(0, mysql.ComStmtSendLongData, 101)) {
		t.Error("1,001 bytes are not refused")
	}
}
