package myerr

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/txn/outcome"
)

// Of returns the error that a client receives for err: MySQL's number, SQLSTATE and text.
// The result may be err itself, which is never changed; it is nil if err is.
func Of(err error) *mysql.SQLError {
	if err == nil {
		return nil
	}
	if cause := unwrapInsert(err); cause != nil {
		err = cause
	}
	var known *mysql.SQLError
	if errors.As(err, &known) {
		return refine(known)
	}
	if e := ofStorage(err); e != nil {
		return e
	}
	return refine(ofEngine(err))
}

// refine gives an error the number, the SQLSTATE and the text that MySQL has for it.
func refine(e *mysql.SQLError) *mysql.SQLError {
	if inner := restored(e.Message); inner != nil {
		e = inner
	}
	if strings.HasSuffix(e.Message, context.Canceled.Error()) {
		return QueryInterrupted.New()
	}
	number := e.Num
	switch {
	case number == mysql.ERUnknownError:
		if s := ofStorage(errors.New(e.Message)); s != nil {
			return s
		}
		number = numberOf(e.Message)
	case number == mysql.ERTruncatedWrongValueForField && badTime.MatchString(e.Message):
		number = mysql.ERTruncatedWrongValue
	}
	text := textOf(number, e.Message)
	if e.Num == mysql.ERUnknownError { // an error with a number may be a client's, of SIGNAL
		text = WithoutPackage(text)
	}
	if number == Deadlock.Number {
		text = Deadlock.format // the engine's text adds addresses of objects
	}
	state := e.State
	if state == "" || state == stateGeneral { // another state comes from SIGNAL or the engine
		state = stateOf(number)
	}
	if number == e.Num && state == e.State && text == e.Message {
		return e
	}
	return &mysql.SQLError{Num: number, State: state, Message: text, Query: e.Query}
}

// withNumber matches the text of a MySQL error inside another error's text.
var withNumber = regexp.MustCompile(`^(?s:(.*)) \(errno (\d+)\) \(sqlstate (\w{5})\)$`)

// restored returns the MySQL error whose text go-mysql-server has put into another error,
// as it does with the parser's errors; nil if there is none.
func restored(text string) *mysql.SQLError {
	parts := withNumber.FindStringSubmatch(text)
	if parts == nil {
		return nil
	}
	number, err := strconv.Atoi(parts[2])
	if err != nil {
		return nil
	}
	return Remade(number, parts[3], parts[1])
}

// unwrapInsert returns the error that go-mysql-server has wrapped together with its row or
// value; nil if err is not wrapped.
func unwrapInsert(err error) (cause error) {
	var row gms.WrappedInsertError
	if errors.As(err, &row) {
		cause, err = row.Cause, row.Cause
	}
	var value gms.WrappedTypeConversionError
	if errors.As(err, &value) {
		cause = value.Err
	}
	return cause
}

// IsConflict reports whether an error is a conflict with another transaction,
// 1213 to a client: the transaction is over, and running it again may succeed.
func IsConflict(err error) bool {
	if err == nil {
		return false
	}
	if cause := unwrapInsert(err); cause != nil {
		err = cause
	}
	return errors.Is(err, outcome.ErrConflict) || gms.ErrLockDeadlock.Is(err) || Deadlock.Is(err)
}
