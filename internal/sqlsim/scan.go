package sqlsim

import (
	"fmt"

	"github.com/farmsql/farmsql/internal/history"
)

// groupRows is the number of rows of t with the same k. A row's k follows from its key,
// so that the rows which a scan could have found are known.
const groupRows = 4

func group(id uint64) uint64 { return id / groupRows }

// scanByIndex reads the rows of a few groups by the index on k.
func (t *transaction) scanByIndex() error {
	first := group(uint64(t.Rand.IntN(t.rows)))
	last := first + uint64(t.Rand.IntN(2))
	where := fmt.Sprintf("k BETWEEN %d AND %d", first, last)
	if first == last {
		where = fmt.Sprintf("k = %d", first)
	}
	return t.scan(where, first*groupRows, min(last*groupRows+groupRows, uint64(t.rows)))
}

// scanByKey reads the rows of a range of keys.
func (t *transaction) scanByKey() error {
	from := uint64(t.Rand.IntN(t.rows))
	to := min(from+1+uint64(t.Rand.IntN(8)), uint64(t.rows))
	return t.scan(fmt.Sprintf("id >= %d AND id < %d", from, to), from, to)
}

// scan reads the rows that meet a condition: those with keys in [from, to). Rows that it
// does not find are absent.
func (t *transaction) scan(where string, from, to uint64) error {
	res, err := t.run("SELECT id, v FROM t WHERE " + where)
	if err != nil {
		return err
	}
	if t.Rand.IntN(4) == 0 {
		counted, err := t.run("SELECT COUNT(*) FROM t WHERE " + where)
		if err != nil {
			return err
		}
		if n := counted.rows[0][0]; n != uint64(len(res.rows)) {
			return fmt.Errorf("sqlsim: of rows with %s there are %d, and COUNT(*) is %d", where, len(res.rows), n)
		}
	}
	gone, err := t.run(fmt.Sprintf("SELECT id, v FROM t_gone WHERE id >= %d AND id < %d", from, to))
	if err != nil {
		return err
	}
	values, err := valuesOf(res.rows, gone.rows)
	if err != nil {
		return err
	}
	for id := from; id < to; id++ {
		o, err := t.object("t", id)
		if err != nil {
			return err
		}
		t.Record.Read(o, history.Value(values[id]))
		delete(values, id)
	}
	if len(values) > 0 {
		return fmt.Errorf("sqlsim: of rows with %s, %d to %d, there are others: %v", where, from, to, values)
	}
	return nil
}

// valuesOf returns the values of rows by their keys, from rows of the table and from rows of its
// _gone table.
func valuesOf(rows, gone [][]uint64) (map[uint64]uint64, error) {
	values := make(map[uint64]uint64)
	for _, row := range gone {
		values[row[0]] = row[1]
	}
	present := make(map[uint64]bool)
	for _, row := range rows {
		if present[row[0]] {
			return nil, fmt.Errorf("sqlsim: a scan has found row %d twice", row[0])
		}
		values[row[0]], present[row[0]] = row[1], true
	}
	return values, nil
}

// byValue reads a row, and looks for its value.
func (t *transaction) byValue(id uint64) error {
	v, found, err := t.read("t", id)
	if err != nil || !found {
		return err
	}
	res, err := t.run(fmt.Sprintf("SELECT id FROM t WHERE v = %d", v))
	if err == nil && (len(res.rows) != 1 || res.rows[0][0] != id) {
		err = fmt.Errorf("sqlsim: row %d has value %d, and by the index on it are rows %v", id, v, res.rows)
	}
	return err
}

// readAll reads all rows.
func (t *transaction) readAll() error {
	if err := t.scan("id >= 0", 0, uint64(t.rows)); err != nil {
		return err
	}
	there, err := t.run("SELECT id, v FROM n")
	if err != nil {
		return err
	}
	gone, err := t.run("SELECT id, v FROM n_gone")
	if err != nil {
		return err
	}
	values, err := valuesOf(there.rows, gone.rows)
	if err != nil {
		return err
	}
	for _, number := range t.numbers {
		o, err := t.object("n", number)
		if err != nil {
			return err
		}
		t.Record.Read(o, history.Value(values[number]))
		delete(values, number)
	}
	if len(values) > 0 {
		return fmt.Errorf("sqlsim: of table n there are rows that nobody has inserted: %v", values)
	}
	return nil
}
