package store

import (
	"math"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
)

// A Memory bounds what statements hold in ordinary memory, each by itself and all together:
// the rows that are sorted, grouped, joined, kept back or read in the transaction, and the
// session's variables. Engines of one process share one. What is counted is an estimate, so
// that the process's heap, as the garbage collector has last found it, is looked at as well.
type Memory struct {
	statement int64 // 0: a part of what all may hold
	// Limit is how many bytes the process may take (GOMEMLIMIT), and live how many were in
	// use when they were last collected.
	Limit, Live func() int64
	clock       clock.Clock
	used        atomic.Int64 // what holdings have been granted

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		collected time.Time // when Memory has last asked for a collection
	}
}

// NewMemory returns a Memory in which a statement may hold so many bytes, 0 for a quarter of
// what all together may. That is half of the process's limit, GOMEMLIMIT, or, if there is
// none, of what the computer has.
func NewMemory(c clock.Clock, statement, computer int64) *Memory {
	limit := func() int64 {
		if n := measured64("/gc/gomemlimit:bytes"); n > 0 && n < math.MaxInt64 {
			return n
		}
		if computer > 0 {
			return computer
		}
		return math.MaxInt64
	}
	return &Memory{statement: statement, Limit: limit, Live: func() int64 { return measured64("/gc/heap/live:bytes") }, clock: c}
}

func measured64(name string) int64 {
	sample := [1]metrics.Sample{{Name: name}}
	metrics.Read(sample[:])
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64))
}

// Used is how many bytes statements and sessions have been granted.
func (m *Memory) Used() int64 { return m.used.Load() }

// The collector needs room for what it has not collected yet, and counting is not exact: so
// what is counted may be half of the process's limit, and what is in use three quarters.
const (
	countedPart  = 2
	livePart     = 4 // of which 3
	oneStatement = 4 // of what all may hold
)

// bounds are what a statement and all statements may hold, and what may be in use.
func (m *Memory) bounds() (statement, total, live int64) {
	limit := m.Limit()
	total, live = limit/countedPart, limit-limit/livePart
	statement = m.statement
	if statement == 0 {
		statement = total / oneStatement
	}
	return min(statement, total), total, live
}

const (
	// freeBytes is what a session may hold without asking, so that small statements do not
	// meet at one counter.
	freeBytes = 64 << 10
	// grantBytes is the unit in which it asks.
	grantBytes = 256 << 10
)

func exceeded(bound int64) error {
	return myerr.StatementMemory.New(bound)
}

func scarce(bound int64) error {
	return myerr.ServerMemory.New(bound)
}

// grant gives n bytes more to a holding, which has need of so many in all.
func (m *Memory) grant(n, need int64) error {
	statement, total, live := m.bounds()
	if need > statement {
		return exceeded(statement)
	}
	if m.used.Add(n) > total || !m.isLive(live) {
		m.used.Add(-n)
		return scarce(total)
	}
	return nil
}

// isLive reports whether no more bytes than bound are in use. What was in use when they were
// last collected may not be any more, so that is asked for again, once a second at most.
func (m *Memory) isLive(bound int64) bool {
	if m.Live() <= bound {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Now().Sub(m.mu.collected) > time.Second {
		runtime.GC()
		m.mu.collected = m.clock.Now()
	}
	return m.Live() <= bound
}

var _ compat.Memory = (*Holding)(nil)

// A Holding is what a session holds of a Memory: for the statement at work, for the
// transaction that is open, and in its variables. Goroutines of one statement share it.
type Holding struct {
	memory  *Memory
	bytes   atomic.Int64
	granted atomic.Int64
	mu      struct {
		lockrank.Mutex[lockrank.Holding]       // guards changes of granted, too
		kept                             int64 // in variables
		variables                        map[string]int64
		read                             int64 // by the transaction, as far as it is counted in bytes
	}
	// inputs are the nodes of the statement at work whose rows are to be metered.
	inputs struct {
		lockrank.Mutex[lockrank.Leaf]
		of map[gms.Node]Metering
	}
}

// Take counts n bytes more, or says why they cannot be had; then they are not counted.
func (h *Holding) Take(n int64) error {
	if h == nil || h.memory == nil || n <= 0 {
		return nil
	}
	if bytes := h.bytes.Add(n); bytes > h.granted.Load()+freeBytes {
		if err := h.grow(); err != nil {
			h.bytes.Add(-n)
			return err
		}
	}
	return nil
}

// Give is the contrary of Take. What has been granted stays so until the statement ends.
func (h *Holding) Give(n int64) {
	if h != nil && h.memory != nil {
		h.bytes.Add(-n)
	}
}

// grow asks for what the holding has come to need.
func (h *Holding) grow() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	need := h.bytes.Load()
	more := need - freeBytes - h.granted.Load()
	if more <= 0 {
		return nil
	}
	more = roundUp(more, grantBytes)
	if err := h.memory.grant(more, need); err != nil {
		return err
	}
	h.granted.Add(more)
	return nil
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// hold counts what the transaction holds, read bytes in all.
func (h *Holding) hold(read int64) error {
	h.mu.Lock()
	more := read - h.mu.read
	h.mu.read = read
	h.mu.Unlock()
	if more < 0 {
		h.Give(-more)
		return nil
	}
	err := h.Take(more)
	if err != nil {
		h.mu.Lock()
		h.mu.read -= more
		h.mu.Unlock()
	}
	return err
}

// keep counts a variable's value, instead of the one that it had.
func (h *Holding) keep(name string, n int64) error {
	if h.memory == nil {
		return nil
	}
	h.mu.Lock()
	more := n - h.mu.variables[name]
	h.mu.Unlock()
	if err := h.Take(more); err != nil {
		return err
	}
	if more < 0 {
		h.Give(-more)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.variables == nil {
		h.mu.variables = make(map[string]int64)
	}
	h.mu.variables[name] = n
	h.mu.kept += more
	return nil
}

// drop counts a variable no more.
func (h *Holding) drop(name string) {
	if h.memory == nil || h.bytes.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.mu.variables[name]
	delete(h.mu.variables, name)
	h.mu.kept -= n
	h.bytes.Add(-n)
}

// settle is called when a statement has ended and nobody needs what it held any more: what
// stays is what variables hold, and the open transaction has read.
func (h *Holding) settle(read int64) {
	if h.memory == nil || h.bytes.Load() == 0 && h.granted.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.read = read
	stays := h.mu.kept + read
	h.bytes.Store(stays)
	if less := h.granted.Load() - roundUp(max(0, stays-freeBytes), grantBytes); less > 0 {
		h.granted.Add(-less)
		h.memory.used.Add(-less)
	}
}

// end gives everything back.
func (h *Holding) end() {
	if h.memory == nil {
		return
	}
	h.mu.Lock()
	h.mu.kept, h.mu.variables = 0, nil
	h.mu.Unlock()
	h.settle(0)
}

// What values take in memory besides their own bytes.
const (
	RowBytesMin   = 24 // a slice
	valueBytesMin = 16 // an interface
	boxedBytes    = 16 // what it points to
)

// RowMemory is about how many bytes a row takes.
func RowMemory(row gms.Row) int64 {
	n := int64(RowBytesMin)
	for _, v := range row {
		n += ValueMemory(v)
	}
	return n
}

// ValueMemory is about how many bytes a value takes.
func ValueMemory(v any) int64 {
	switch v := v.(type) {
	case nil, bool, int8, uint8:
		return valueBytesMin
	case string:
		return valueBytesMin + boxedBytes + int64(len(v))
	case []byte:
		return valueBytesMin + boxedBytes + int64(len(v))
	case int16, uint16, int32, uint32, int64, uint64, float32, float64:
		return valueBytesMin + boxedBytes/2
	}
	const others = 4 // of JSON documents mostly, which are several values
	return valueBytesMin + boxedBytes + others*compat.TextBytes(v)
}

// tokenBytes is what a token takes in memory, parsed and planned: 170 to 360 bytes as a rule.
const tokenBytes = 256

// textMemory is about how many bytes a statement takes. It counts what separates tokens,
// outside of strings.
func textMemory(text string) int64 {
	tokens, quote, isSpace := int64(0), byte(0), false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			if !isSpace {
				tokens++
			}
			isSpace = true
			continue
		case c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' && c != '_' || c > 'z' && c < 0x80:
			tokens++
		}
		isSpace = false
	}
	return int64(len(text)) + tokens*tokenBytes
}
