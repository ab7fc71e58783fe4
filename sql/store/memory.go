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

// A Memory bounds what statements hold in ordinary memory, each statement and all together:
// the rows that they sort, group, join, keep back or read in the transaction, and the
// sessions' variables. The engines of one process share one. The counts are estimates; so
// Memory also checks the size of the process's heap, as the garbage collector last measured
// it.
type Memory struct {
	statement int64 // 0 means a part of the limit of all statements
	// Limit returns the number of bytes that the process may use (GOMEMLIMIT), and Live the
	// number in use after the last garbage collection.
	Limit, Live func() int64
	clock       clock.Clock
	used        atomic.Int64 // the sum that holdings have been granted

	mu struct {
		lockrank.Mutex[lockrank.Leaf]
		collected time.Time // when Memory last started a garbage collection
	}
}

// NewMemory returns a Memory that bounds each statement to the given number of bytes. If that is
// 0, it bounds each statement to a quarter of the bound for all statements. The bound for all is
// half of GOMEMLIMIT or, if that is not set, half of the computer's memory.
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

// measured64 returns a measurement of Go's runtime by its name; 0 if the runtime does not have it.
func measured64(name string) int64 {
	sample := [1]metrics.Sample{{Name: name}}
	metrics.Read(sample[:])
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(min(sample[0].Value.Uint64(), math.MaxInt64))
}

// Used returns the number of bytes granted to statements and sessions.
func (m *Memory) Used() int64 { return m.used.Load() }

// The garbage collector needs room for what it has not collected yet, and the counts are
// estimates. So the counts may add up to half of the process's limit, and the heap in use to
// three quarters.
const (
	countedPart  = 2 // the counts may add up to 1/2 of the process's limit
	livePart     = 4 // the heap may use all but 1/4 of it
	oneStatement = 4 // one statement may use 1/4 of what all may use
)

// bounds returns three bounds: of the bytes that one statement may hold, of those that all statements may hold, and of
// the heap in use.
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
	// freeBytes is what a session may hold without a grant, so that small statements do not
	// contend for one counter.
	freeBytes = 64 << 10
	// grantBytes is the unit of grants.
	grantBytes = 256 << 10
)

func exceeded(bound int64) error {
	return myerr.StatementMemory.New(bound)
}

func scarce(bound int64) error {
	return myerr.ServerMemory.New(bound)
}

// grant grants n more bytes to a holding; need is the sum of all bytes that the holding then has.
func (m *Memory) grant(n, need int64) error {
	statement, total, live := m.bounds()
	if need > statement {
		return exceeded(statement)
	}
	if m.used.Add(n) > total || m.Live() > live {
		m.used.Add(-n)
		return scarce(total)
	}
	return nil
}

// collectEvery is the least time between two garbage collections that Memory starts.
const collectEvery = time.Second

// collect runs a garbage collection if the last one has found more of the heap in use than is allowed: some of these
// bytes may be free by now. If Memory has started one less than collectEvery ago, collect waits first: what was in use
// then may have been the memory of a statement that has ended since. So the caller holds no lock.
func (m *Memory) collect() {
	_, _, live := m.bounds()
	if m.Live() <= live {
		return
	}
	if wait := m.tryCollect(); wait > 0 {
		m.clock.Sleep(wait)
		if m.Live() > live {
			m.tryCollect()
		}
	}
}

// tryCollect runs a garbage collection, or returns how long the caller has to wait until it may.
func (m *Memory) tryCollect() (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if wait := collectEvery - m.clock.Now().Sub(m.mu.collected); wait > 0 {
		return wait
	}
	runtime.GC()
	m.mu.collected = m.clock.Now()
	return 0
}

var _ compat.Memory = (*Holding)(nil)

// A Holding is the part of a Memory that a session holds: for the running statement, the open
// transaction and its variables. The goroutines of one statement share it.
type Holding struct {
	memory  *Memory
	bytes   atomic.Int64
	granted atomic.Int64
	mu      struct {
		lockrank.Mutex[lockrank.Holding]       // also guards changes of granted
		kept                             int64 // used by variables
		variables                        map[string]int64
		read                             int64 // bytes read by the transaction, if bytes includes them
	}
	// staying counts the bytes of rows with Metering.Stays since the innermost subquery that is being executed began.
	staying atomic.Int64
	// inputs are the nodes of the running statement whose rows are to be metered.
	inputs struct {
		lockrank.Mutex[lockrank.Leaf]
		of map[gms.Node]Metering
	}
}

// Take counts n more bytes, or returns an error and does not count them.
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

// Give undoes Take. The grant does not shrink before the statement ends.
func (h *Holding) Give(n int64) {
	if h != nil && h.memory != nil {
		h.bytes.Add(-n)
	}
}

// grow asks for the bytes that the holding needs beyond its grant.
func (h *Holding) grow() error {
	h.memory.collect()
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

// setRead sets the number of bytes that the transaction has read.
func (h *Holding) setRead(read int64) error {
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

// keep sets the number of bytes of a variable's value.
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

// drop removes a variable from the count.
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

// settle is called when a statement has ended and its memory is free. The holding keeps only
// what variables hold and what the open transaction has read.
func (h *Holding) settle(read int64) {
	if h.memory == nil || (h.bytes.Load() == 0 && h.granted.Load() == 0) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.read = read
	h.staying.Store(0)
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

// The memory that values take besides their own bytes.
const (
	RowBytesMin   = 24 // a slice
	valueBytesMin = 16 // an interface
	boxedBytes    = 16 // the boxed value
)

// RowMemory estimates the bytes of a row.
func RowMemory(row gms.Row) int64 {
	n := int64(RowBytesMin)
	for _, v := range row {
		n += ValueMemory(v)
	}
	return n
}

// ValueMemory estimates the bytes of a value.
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
	const others = 4 // mostly JSON documents, which consist of several values
	return valueBytesMin + boxedBytes + others*compat.TextBytes(v)
}

// tokenBytes is the memory of a token, parsed and planned: mostly 170 to 360 bytes.
const tokenBytes = 256

// textMemory estimates the bytes of a parsed and planned statement. It counts the separators
// of tokens outside of strings.
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
		case c < '0' || (c > '9' && c < 'A') || (c > 'Z' && c < 'a' && c != '_') || (c > 'z' && c < 0x80):
			tokens++
		}
		isSpace = false
	}
	return int64(len(text)) + tokens*tokenBytes
}
