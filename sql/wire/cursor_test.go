package wire

import (
	"encoding/binary"
	"strings"
	"testing"
)

// TestCursor: a client fetches the rows of a cursor while other statements of its connection run, of which each has
// its own rows.
func TestCursor(t *testing.T) {
	s := newFarmServer(t)
	root := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, a VARCHAR(20))",
		"INSERT INTO test.t VALUES (1, 'one'), (2, 'two'), (3, NULL), (4, 'four'), (5, 'five'), (6, 'six')"} {
		seen(root, q)
	}
	c := dialRaw(t, s.addr.String())
	prepared := c.command(t, append([]byte{0x16}, "SELECT a FROM t WHERE id BETWEEN 1 AND 4"...))
	for range 2 { // the definition of a column and its end
		c.read(t)
	}
	id := prepared[1:5]
	fetch := func(rows byte) string {
		t.Helper()
		return strings.Join(c.rows(t, append(append([]byte{0x1c}, id...), rows, 0, 0, 0)), " ")
	}
	for range 4 { // the first execution is the engine's
		begun := c.command(t, append(append([]byte{0x17}, id...), 1, 1, 0, 0, 0))
		if begun[0] != 1 {
			t.Fatalf("no cursor: %q", begun)
		}
		for range 2 { // as above
			c.read(t)
		}
		got := fetch(1)
		for range 3 {
			if other := c.exec(t, "SELECT a FROM t WHERE id BETWEEN 5 AND 6"); !strings.Contains(other, "five") || !strings.Contains(other, "six") {
				t.Errorf("beside a cursor: %q", other)
			}
		}
		got += " " + fetch(2) + " " + fetch(9)
		const want = "\x00\x00\x03one \x00\x00\x03two \x00\x04 \x00\x00\x04four"
		if got != want {
			t.Errorf("the cursor has %q, want %q", got, want)
		}
	}
}

// rows sends a request, and returns the packets of the answer up to its end.
func (r *rawClient) rows(t *testing.T, request []byte) (rows []string) {
	t.Helper()
	for p := r.command(t, request); ; p = r.read(t) {
		if p[0] == 0xff {
			t.Fatalf("an error: %d %q", binary.LittleEndian.Uint16(p[1:]), p[3:])
		}
		if p[0] == 0xfe {
			return rows
		}
		rows = append(rows, string(p))
	}
}
