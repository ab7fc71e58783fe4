package sqlsim

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/simtest"
	"github.com/farmsql/farmsql/sql/wire"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A transaction is one that the client begins and ends explicitly.
type transaction struct {
	*session
	simtest.Work
}

// Transact implements simtest.Session.
func (s *session) Transact(w simtest.Work) error {
	if w.Rand.IntN(4) == 0 {
		return s.runSingle(w)
	}
	return s.runWithin(w, (*transaction).body)
}

// ReadAll implements simtest.Session.
func (s *session) ReadAll(w simtest.Work) error { return s.runWithin(w, (*transaction).readAll) }

// runSingle runs a statement that is a transaction by itself.
func (s *session) runSingle(w simtest.Work) error {
	id := uint64(w.Rand.IntN(s.rows))
	o, err := s.object("t", id)
	if err != nil {
		return err
	}
	was, known := s.seen[id]
	if !known || w.Rand.IntN(2) == 0 {
		return s.lookUp(w, id, o)
	}
	v := w.Value()
	w.Record.Read(o, history.Value(was)) // an UPDATE that changes the row has read this value; otherwise the attempt is given up
	w.Record.Write(o, v)
	res, err := s.run(fmt.Sprintf("UPDATE t SET v = %d WHERE id = %d AND v = %d", v, id, was))
	delete(s.seen, id)
	switch {
	case err != nil:
		return translate(err)
	case res.ok.RowsAffected == 0:
		return simtest.ErrGivenUp
	}
	s.seen[id] = uint64(v)
	return nil
}

// lookUp reads a row of t.
func (s *session) lookUp(w simtest.Work, id uint64, o history.Object) error {
	res, err := s.run(fmt.Sprintf("SELECT v FROM t WHERE id = %d", id))
	if err != nil {
		return translate(err)
	}
	if len(res.rows) == 0 {
		w.Record.Absent(o)
		return nil
	}
	w.Record.Read(o, history.Value(res.rows[0][0]))
	s.seen[id] = res.rows[0][0]
	return nil
}

// runWithin runs do in a transaction, between BEGIN and COMMIT. It records the transaction as shown:
// the listener promises that every result is true when it is shown, even if the transaction aborts
// later.
func (s *session) runWithin(w simtest.Work, do func(*transaction) error) error {
	t := &transaction{s, w}
	w.Record.Shown()
	_, err := s.run("BEGIN")
	if err == nil {
		err = do(t)
	}
	if err == nil {
		_, err = s.run("COMMIT")
		return translate(err)
	}
	err = translate(err)
	if s.end.InTransaction() {
		if _, err := s.run("ROLLBACK"); err != nil {
			return translate(err)
		}
	}
	if errors.Is(err, outcome.ErrInDoubt) { // a nested transaction, such as a sequence's, is in doubt; the outer one is not
		return simtest.ErrGivenUp
	}
	return err
}

// body runs a few random operations.
func (t *transaction) body() error {
	for range 1 + t.Rand.IntN(5) {
		point := t.Rand.IntN(10) == 0
		mark := t.Record.Mark()
		if point {
			if _, err := t.run("SAVEPOINT p"); err != nil {
				return err
			}
		}
		if err := t.operation(); err != nil {
			return err
		}
		if point {
			if _, err := t.run("ROLLBACK TO SAVEPOINT p"); err != nil {
				return err
			}
			t.Record.Undo(mark)
		}
		if t.Rand.IntN(20) == 0 {
			t.Think()
		}
	}
	if t.Rand.IntN(15) == 0 {
		return simtest.ErrGivenUp
	}
	return nil
}

// operation executes a random operation. Rows with low numbers are the most likely, so that
// transactions conflict.
func (t *transaction) operation() error {
	id := uint64(t.Rand.IntN(1 + t.Rand.IntN(t.rows)))
	switch t.Rand.IntN(12) {
	case 0, 1:
		_, _, err := t.read("t", id)
		return err
	case 2, 3, 4, 5:
		return t.change("t", id)
	case 6:
		return t.scanByIndex()
	case 7:
		return t.scanByKey()
	case 8:
		return t.byValue(id)
	case 9:
		return t.number()
	}
	if len(t.numbers) == 0 {
		return t.number()
	}
	number := t.numbers[len(t.numbers)-1-t.Rand.IntN(min(len(t.numbers), 30))]
	if t.Rand.IntN(2) == 0 {
		_, _, err := t.read("n", number)
		return err
	}
	return t.change("n", number)
}

// read reads a row or, if it is absent, its _gone table. v is 0, history.Initial, if neither has the key.
func (t *transaction) read(table string, id uint64) (v uint64, found bool, err error) {
	o, err := t.object(table, id)
	if err != nil {
		return 0, false, err
	}
	var st wire.Statement
	query := fmt.Sprintf("SELECT v FROM %s WHERE id = %d", table, id)
	if t.Rand.IntN(4) == 0 {
		st.Locking, query = wire.LockUpdate, query+" FOR UPDATE"
	}
	res, err := t.runWith(st, query)
	if err != nil {
		return 0, false, err
	}
	found = len(res.rows) > 0
	if !found {
		if res, err = t.run(fmt.Sprintf("SELECT v FROM %s_gone WHERE id = %d", table, id)); err != nil {
			return 0, false, err
		}
	}
	if len(res.rows) > 0 {
		v = res.rows[0][0]
	}
	t.Record.Read(o, history.Value(v))
	return v, found, nil
}

// change changes or deletes a row, or inserts it if it is absent. Rows of n are not
// inserted again.
func (t *transaction) change(table string, id uint64) error {
	_, found, err := t.read(table, id)
	if err != nil {
		return err
	}
	o, err := t.object(table, id)
	v := t.Value()
	switch {
	case err != nil:
		return err
	case !found && table == "n":
		return nil
	case !found:
		err = t.changes(1, "INSERT INTO t (id, k, v, pad) VALUES (%d, %d, %d, '%s')", id, group(id), v, t.pad())
	case t.Rand.IntN(3) == 0:
		if err = t.changes(1, "DELETE FROM %s WHERE id = %d", table, id); err == nil {
			_, err = t.run(fmt.Sprintf("REPLACE INTO %s_gone VALUES (%d, %d)", table, id, v))
		}
		if err == nil {
			t.Record.Delete(o, v)
		}
		return err
	case t.Rand.IntN(3) == 0:
		err = t.changes(1, "UPDATE %s SET v = %d, pad = CONCAT('%s', 'x') WHERE id = %d", table, v, t.pad(), id)
	default:
		err = t.changes(1, "UPDATE %s SET v = %d WHERE id = %d", table, v, id)
	}
	if err == nil {
		t.Record.Write(o, v)
	}
	return err
}

// changes runs a statement, and returns an error unless the statement changes this number of rows.
func (t *transaction) changes(rows uint64, format string, args ...any) error {
	query := fmt.Sprintf(format, args...)
	res, err := t.run(query)
	if err == nil && res.ok.RowsAffected != rows {
		err = fmt.Errorf("sqlsim: %s: has changed %d rows, not %d", query, res.ok.RowsAffected, rows)
	}
	return err
}

// pad returns text that makes rows of different sizes.
func (t *transaction) pad() string {
	const text = "................................................................................................................................"
	return text[:t.Rand.IntN(len(text))]
}

// number inserts a row whose key AUTO_INCREMENT generates.
func (t *transaction) number() error {
	v := t.Value()
	res, err := t.run(fmt.Sprintf("INSERT INTO n (v, pad) VALUES (%d, '%s')", v, t.pad()))
	if err != nil {
		return err
	}
	if t.Dead() { // its reservation may be lost: nobody has been told the number
		return simtest.ErrGivenUp
	}
	o, err := t.noteNumber(res.ok.InsertID)
	if err != nil {
		return err
	}
	t.Record.Read(o, history.Initial) // no row has had the number before
	t.Record.Write(o, v)
	return nil
}
