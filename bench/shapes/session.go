package shapes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A Mode is the way in which clients send statements.
type Mode string

// Modes.
const (
	Text     Mode = "text"     // parameters in the statement's text
	Prepared Mode = "prepared" // statements prepared once, parameters apart
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Text, Prepared} }

// A session is one connection to a server.
type session struct {
	server   *Server
	mode     Mode
	db       *sql.DB
	conn     *sql.Conn
	id       int64 // the connection's number at the server
	prepared map[string]*sql.Stmt
}

// openSession connects to a server.
func openSession(ctx context.Context, server *Server, mode Mode) (*session, error) {
	s := &session{server: server, mode: mode}
	var err error
	if s.db, err = server.Open(); err != nil {
		return nil, err
	}
	s.db.SetMaxIdleConns(-1)
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// connect opens a connection, in place of the one before if there is one.
func (s *session) connect(ctx context.Context) (err error) {
	s.disconnect()
	s.prepared = make(map[string]*sql.Stmt)
	if s.conn, err = s.db.Conn(ctx); err == nil {
		err = s.conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&s.id)
	}
	if err != nil {
		return fmt.Errorf("bench/shapes: %s: %w", s.server.Name, err)
	}
	return nil
}

// use selects the database of the tables.
func (s *session) use(ctx context.Context) error { return s.exec(ctx, "USE "+database) }

func (s *session) disconnect() {
	if s.conn == nil {
		return
	}
	for _, p := range s.prepared {
		_ = p.Close() // no error matters: the statements end with the connection
	}
	_ = s.conn.Close() // the connection ends, because the pool keeps none
	s.conn = nil
}

// close ends the session.
func (s *session) close() error {
	s.disconnect()
	return s.db.Close()
}

// renew makes the session usable again after an error. The failed statement may still run, and a
// transaction may be open, so renew kills the connection and opens another.
func (s *session) renew(ctx context.Context) error {
	killer, err := s.db.Conn(ctx)
	if err == nil {
		_, err = killer.ExecContext(ctx, fmt.Sprintf("KILL %d", s.id))
		_ = killer.Close()
		if noThread := new(mysql.MySQLError); errors.As(err, &noThread) && noThread.Number == 1094 {
			err = nil // the connection has ended already
		}
	}
	return errors.Join(err, s.connect(ctx), s.use(ctx))
}

// exec executes a statement that is not measured.
func (s *session) exec(ctx context.Context, text string, args ...any) error {
	if _, err := s.conn.ExecContext(ctx, text, args...); err != nil {
		return fmt.Errorf("bench/shapes: %s: %.80s: %w", s.server.Name, text, err)
	}
	return nil
}

// prepare prepares the statements of a shape.
func (s *session) prepare(ctx context.Context, shape *Shape) error {
	if s.mode != Prepared {
		return nil
	}
	for _, st := range shape.statements {
		if st.isControl || s.prepared[st.text] != nil {
			continue
		}
		p, err := s.conn.PrepareContext(ctx, st.text)
		if err != nil {
			return err
		}
		s.prepared[st.text] = p
	}
	return nil
}

// forget closes the prepared statements.
func (s *session) forget() {
	for _, p := range s.prepared {
		_ = p.Close() // the next statement notices a broken connection
	}
	clear(s.prepared)
}

// query sends a statement that returns rows.
func (s *session) query(ctx context.Context, st *statement, args []any) (*sql.Rows, error) {
	if p := s.prepared[st.text]; p != nil {
		return p.QueryContext(ctx, args...)
	}
	return s.conn.QueryContext(ctx, st.text, args...)
}

// change sends a statement that returns no rows.
func (s *session) change(ctx context.Context, st *statement, args []any) (sql.Result, error) {
	if p := s.prepared[st.text]; p != nil {
		return p.ExecContext(ctx, args...)
	}
	return s.conn.ExecContext(ctx, st.text, args...)
}

// prelude executes the statements that precede a shape's execution.
func (s *session) prelude(ctx context.Context, shape *Shape, ds []draw) error {
	for i := range shape.before {
		st := &shape.before[i]
		if _, err := s.conn.ExecContext(ctx, st.text, st.arguments(ds)...); err != nil {
			return err
		}
	}
	return nil
}

// execute executes the shape, reads all rows, and returns how long it took.
func (s *session) execute(ctx context.Context, shape *Shape, ds []draw) (took time.Duration, err error) {
	begin := time.Now()
	for i := range shape.statements {
		st := &shape.statements[i]
		if !st.isQuery {
			_, err = s.change(ctx, st, st.arguments(ds))
		} else {
			err = s.read(ctx, st, st.arguments(ds))
		}
		if err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}

// read reads the rows of a statement, and drops them.
func (s *session) read(ctx context.Context, st *statement, args []any) error {
	rows, err := s.query(ctx, st, args)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

// answer executes a shape, and returns the answers of its statements as text.
func (s *session) answer(ctx context.Context, shape *Shape, ds []draw) (answers []string, err error) {
	for i := range shape.statements {
		st := &shape.statements[i]
		var a string
		if st.isQuery {
			a, err = s.answerRows(ctx, shape, st, ds)
		} else {
			a, err = s.answerChange(ctx, shape, st, ds)
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

func (s *session) answerChange(ctx context.Context, shape *Shape, st *statement, ds []draw) (string, error) {
	res, err := s.change(ctx, st, st.arguments(ds))
	if err != nil {
		return "", err
	}
	changed, _ := res.RowsAffected() // no error: the driver never returns one
	inserted, _ := res.LastInsertId()
	if shape.compare == compareCounts {
		return fmt.Sprintf("%d rows", changed), nil
	}
	return fmt.Sprintf("%d rows, insert id %d", changed, inserted), nil
}

func (s *session) answerRows(ctx context.Context, shape *Shape, st *statement, ds []draw) (string, error) {
	rows, err := s.query(ctx, st, st.arguments(ds))
	if err != nil {
		return "", err
	}
	lines, err := readLines(rows)
	if err != nil {
		return "", err
	}
	switch {
	case shape.compare == compareNothing:
		return "", nil
	case shape.compare == compareCounts:
		return fmt.Sprintf("%d rows", len(lines)), nil
	case !st.isOrdered:
		slices.Sort(lines)
	}
	return strings.Join(lines, "\n"), nil
}

// readLines returns rows as text, one line for each row.
func readLines(rows *sql.Rows) (lines []string, err error) {
	err = eachRow(rows, func(line string) { lines = append(lines, line) })
	return lines, err
}

// eachRow calls f with each row as text, and closes the rows.
func eachRow(rows *sql.Rows, f func(line string)) error {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		var b strings.Builder
		for i, v := range values {
			if i > 0 {
				b.WriteString(" | ")
			}
			if b.WriteString(v.String); !v.Valid {
				b.WriteString("NULL")
			}
		}
		f(b.String())
	}
	return rows.Err()
}
