package kv

import "github.com/farmsql/farmsql/bench"

// many is a set of keys that are looked up together.
type many struct {
	th      *bench.Thread
	w       *Workload
	numbers []int
	keys    [][]byte
	err     error // the error of the first wrong answer
	visit   func(i int, value []byte, ok bool)
}

// newMany returns a set of Config.Batch keys. All share one piece of memory.
func newMany(w *Workload, th *bench.Thread) *many {
	m := &many{th: th, w: w, numbers: make([]int, w.cfg.Batch)}
	memory := make([]byte, keyBytes*w.cfg.Batch)
	for i := range w.cfg.Batch {
		m.keys = append(m.keys, memory[i*keyBytes:][:keyBytes:keyBytes])
	}
	m.visit = m.see
	return m
}

// see checks the value of key i of the set, unless an earlier answer was wrong.
func (m *many) see(i int, value []byte, ok bool) {
	if m.err == nil {
		m.err = m.w.checkAnswer(m.keys[i], m.numbers[i], value, ok)
	}
}

// do looks up keys drawn by c.
func (m *many) do(c *client) error {
	for i := range m.keys {
		m.numbers[i] = c.draw()
		fillKey(m.keys[i], m.numbers[i])
	}
	m.th.Together = len(m.keys)
	if err := c.lookupMany(m.keys, m.visit); err != nil {
		return err
	}
	return m.err
}
