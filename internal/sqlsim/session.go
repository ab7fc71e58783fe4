package sqlsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/internal/simtest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/fast"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/wire"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// A session is the session of one client with the SQL engine of a machine.
type session struct {
	*engine
	sql *sql.Session
	// end ends statements by the listener's rules.
	end wire.Session
	// seen are the values that the session has last seen of rows of table t.
	seen map[uint64]uint64
}

// A result is the result of a statement: rows of numbers, or the number of changed rows.
type result struct {
	rows [][]uint64
	ok   types.OkResult
}

// session returns the session of a new client.
func (e *engine) session() *session {
	e.clients++
	s := &session{engine: e, sql: e.sql.NewSession("localhost", client, e.clients), seen: make(map[uint64]uint64)}
	s.sql.SetCurrentDatabase("d")
	s.end = wire.EndOf(s.sql)
	return s
}

// run runs a statement as the listener does, once.
func (s *session) run(query string) (result, error) { return s.runWith(wire.Statement{}, query) }

// runWith runs a statement as the listener does, once; the listener would pass st to
// BeginStatement.
func (s *session) runWith(st wire.Statement, query string) (result, error) {
	s.end.BeginStatement(st)
	res, err := s.runGuarded(query)
	shows := wire.ShowsResult
	if res.ok.RowsAffected > 0 {
		shows = wire.ShowsSuccess
	}
	if err = s.end.EndStatement(ctx, shows, err); err != nil {
		return result{}, err
	}
	return res, nil
}

// runGuarded runs a statement, and turns its panics into errors. go-mysql-server may panic if a
// statement's reads show different moments; validation would find that out only when the statement
// ends. Panics by which the simulator ends dead processes pass through.
func (s *session) runGuarded(query string) (res result, err error) {
	defer func() {
		p := recover()
		if bug, isBug := p.(runtime.Error); isBug {
			err = fmt.Errorf("sqlsim: %s: panic: %w", query, bug)
		} else if p != nil {
			panic(p)
		}
	}()
	res, err = s.runCompiled(query)
	if errors.Is(err, fast.ErrPlan) {
		return s.runPlanned(query)
	}
	return res, err
}

// runCompiled runs a statement in its compiled form, unless it has to be planned.
func (s *session) runCompiled(query string) (r result, err error) {
	x := s.sql.Compiled(query, false, nil)
	if x.Compiled == nil {
		return r, fast.ErrPlan
	}
	res, err := s.sql.Run(s.engine.sql.NewContext(ctx, s.sql, gms.WithQuery(query)), x)
	if err != nil {
		return r, err
	}
	r.ok = res.OK
	for _, row := range res.Rows {
		if err := r.add(row); err != nil {
			return r, err
		}
	}
	for _, row := range res.Values {
		numbers := make([]uint64, len(row))
		for i, v := range row {
			if numbers[i], err = strconv.ParseUint(v.ToString(), 10, 64); err != nil {
				return r, err
			}
		}
		r.rows = append(r.rows, numbers)
	}
	return r, nil
}

// runPlanned runs a statement through go-mysql-server. If the statement fails, runPlanned cancels
// its context and then closes its rows, as the listener does.
func (s *session) runPlanned(query string) (r result, err error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := s.engine.sql.NewContext(within, s.sql, gms.WithQuery(query))
	schema, iter, _, err := s.engine.sql.GMS().Query(c, query)
	if err != nil {
		return r, err
	}
	for {
		row, err := iter.Next(c)
		if err == nil {
			err = r.add(row)
		}
		switch {
		case err == io.EOF:
			return r, iter.Close(c)
		case err != nil:
			if !types.IsOkResultSchema(schema) {
				cancel(err)
				_ = iter.Close(c) // the first error is the one that counts
			}
			return r, err
		}
	}
}

// add adds a row that go-mysql-server has returned.
func (r *result) add(row gms.Row) error {
	if len(row) == 1 {
		if ok, isOK := row[0].(types.OkResult); isOK {
			r.ok = ok
			return nil
		}
	}
	numbers := make([]uint64, len(row))
	for i, v := range row {
		n, err := strconv.ParseUint(fmt.Sprint(v), 10, 64)
		if err != nil {
			return fmt.Errorf("sqlsim: a row holds %v: %w", row, err)
		}
		numbers[i] = n
	}
	r.rows = append(r.rows, numbers)
	return nil
}

// outcomes maps the MySQL errors with which statements may end because of faults and
// conflicts to the simulator's errors.
var outcomes = map[int]error{
	1213: outcome.ErrConflict,
	1205: outcome.ErrConflict, // a table is being altered, or a log has no room
	1412: outcome.ErrConflict, // the table has changed
	1180: outcome.ErrInDoubt,
	1047: wait.ErrUnavailable,
	1197: outcome.ErrTooLarge,
	1114: region.ErrFull,
	1053: outcome.ErrEvicted,
}

// translate converts err to the simulator's error.
func translate(err error) error {
	if err == nil || errors.Is(err, simtest.ErrGivenUp) {
		return err
	}
	known := myerr.Of(err)
	if expected := outcomes[known.Num]; expected != nil {
		return fmt.Errorf("%w: %w", expected, err)
	}
	return fmt.Errorf("sqlsim: MySQL error %d: %w", known.Num, err)
}
