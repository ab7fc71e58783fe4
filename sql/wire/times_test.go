package wire

import (
	"encoding/binary"
	"strings"
	"testing"
)

func TestTimeText(t *testing.T) {
	for in, want := range map[string]string{
		"2024-1-2": "2024-01-02", "987-12-31 23:59:59": "0987-12-31 23:59:59", "2024-1-2 3:4:5.678": "2024-01-02 03:04:05.000678", "2024-11-12 13:14:15.123456": "2024-11-12 13:14:15.123456",
		"3:4:5": "03:04:05", "-838:59:5.7": "-838:59:05.000007", "-1:2:3": "-01:02:03", "0:0:0.0": "00:00:00.000000", " ": " ", "00:00:00": "00:00:00",
	} {
		if got := string(timeText([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Points in time that come in the binary protocol are those that were meant.
func TestBinaryTimes(t *testing.T) {
	s := newFarmServer(t)
	root := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, at DATETIME(6), d DATE, ti TIME(6), s VARCHAR(40))"} {
		seen(root, q)
	}
	c := dialRaw(t, s.addr.String())
	const insert = "INSERT INTO t VALUES (1, ?, ?, ?, ?)"
	prepared := c.command(t, append([]byte{0x16}, insert...))
	for range 5 { // four parameters and their end
		c.read(t)
	}
	execute := append([]byte{0x17}, prepared[1:5]...)
	execute = append(execute, 0, 1, 0, 0, 0, 0 /* NULL */, 1, 12, 0, 10, 0, 11, 0, 12, 0)
	moment := append([]byte{11, 2024 & 0xff, 2024 >> 8, 1, 2, 3, 4, 5}, binary.LittleEndian.AppendUint32(nil, 678)...)
	execute = append(append(execute, moment...), 4, 2024&0xff, 2024>>8, 3, 4)
	execute = append(append(execute, 12, 1, 1, 0, 0, 0, 2, 3, 4), binary.LittleEndian.AppendUint32(nil, 50000)...)
	execute = append(execute, moment...)
	c.command(t, execute)
	got := c.exec(t, "SELECT at, d, ti, s FROM t")
	for _, want := range []string{"2024-01-02 03:04:05.000678", "2024-03-04", "-26:03:04.050000"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %s in it", got, want)
		}
	}
	if n := strings.Count(got, "2024-01-02 03:04:05.000678"); n != 2 {
		t.Errorf("got %q, where a moment is %d times", got, n)
	}
}
