package routine

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A mild condition becomes a warning if it has no handler.
type mild struct{ *mysql.SQLError }

func (m mild) Unwrap() error { return m.SQLError }

// handle executes the handler for an error of a statement, and returns how the body goes on.
func (b *body) handle(s sqlparser.Statement, err error) error {
	e := myerr.In(s, b.ctx.GetCurrentDatabase(), err)
	if e.Num != myerr.Of(err).Num {
		err = e // CALL's caller reports the error, and does not know this statement
	}
	scope, h := b.handlerFor(e)
	switch {
	case b.ctx.Err() != nil && errors.Is(err, outcome.ErrInDoubt):
		return unhandled{err} // the client must know that the statement may have committed
	case b.ctx.Err() != nil: // the client is gone, the statement was killed, or the time limit has passed
		return unhandled{b.ctx.Err()}
	case h == nil && errors.As(err, &mild{}):
		b.ctx.Warn(e.Num, "%s", e.Message)
		return nil
	case h == nil:
		return unhandled{err}
	}
	inner := b.scopes
	// The handler does not see inner blocks; they are put back after it, and may go on.
	b.scopes = slices.Clip(b.scopes[:slices.Index(b.scopes, scope)+1])
	b.raised = append(b.raised, e)
	scope.handling = true
	err = b.statement(h.Statement)
	scope.handling = false
	b.raised = b.raised[:len(b.raised)-1]
	b.scopes = inner
	if err == nil && h.Action == sqlparser.DeclareHandlerAction_Exit {
		return exit{scope}
	}
	return err
}

// warned executes the handler for the warnings of a statement, if the statement has added any;
// before is the number of warnings that the session had before the statement.
func (b *body) warned(s sqlparser.Statement, before uint16) error {
	switch s.(type) {
	case *sqlparser.BeginEndBlock, *sqlparser.IfStatement, *sqlparser.CaseStatement, *sqlparser.While, *sqlparser.Repeat, *sqlparser.Loop:
		return nil // the statements inside have handled their warnings
	}
	if b.ctx.Session.WarningCount() <= before {
		return nil
	}
	all := b.ctx.Session.Warnings()
	w := all[len(all)-1] // the last one decides
	e := myerr.Remade(w.Code, "01000", w.Message)
	if _, h := b.handlerFor(e); h == nil || w.Level == "Note" {
		return nil
	}
	return b.handle(s, e)
}

// handlerFor finds the handler for an error: in the innermost block that handles the error, the
// handler with the most precise condition.
func (b *body) handlerFor(e *mysql.SQLError) (*scope, *sqlparser.DeclareHandler) {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		scope := b.scopes[i]
		if scope.handling {
			continue
		}
		var found *sqlparser.DeclareHandler
		best := 0
		for _, h := range scope.handlers {
			for _, c := range handled(h) {
				if p := b.precision(c, e); p > best {
					found, best = h, p
				}
			}
		}
		if found != nil {
			return scope, found
		}
	}
	return nil, nil
}

// precision returns how precisely a condition matches an error, 0 if it does not match.
func (b *body) precision(c sqlparser.DeclareHandlerCondition, e *mysql.SQLError) int {
	class := e.State[:min(2, len(e.State))]
	matches := false
	precision := 1
	switch c.ValueType {
	case sqlparser.DeclareHandlerCondition_ConditionName:
		named := find(b, func(s *scope) map[string]sqlparser.DeclareHandlerCondition { return s.conditions }, c.String)
		if named.ValueType != "" {
			return b.precision(named, e)
		}
	case sqlparser.DeclareHandlerCondition_MysqlErrorCode:
		matches, precision = string(c.MysqlErrorCode.Val) == strconv.Itoa(e.Num), 3
	case sqlparser.DeclareHandlerCondition_SqlState:
		matches, precision = c.String == e.State, 2
	case sqlparser.DeclareHandlerCondition_SqlWarning:
		matches = class == "01"
	case sqlparser.DeclareHandlerCondition_NotFound:
		matches = class == "02"
	case sqlparser.DeclareHandlerCondition_SqlException:
		matches = class != "00" && class != "01" && class != "02"
	}
	if !matches {
		return 0
	}
	return precision
}

// conditionOf returns the handler condition that a DECLARE ... CONDITION names.
func conditionOf(d *sqlparser.DeclareCondition) sqlparser.DeclareHandlerCondition {
	if d.MysqlErrorCode != nil {
		return sqlparser.DeclareHandlerCondition{ValueType: sqlparser.DeclareHandlerCondition_MysqlErrorCode, MysqlErrorCode: d.MysqlErrorCode}
	}
	return sqlparser.DeclareHandlerCondition{ValueType: sqlparser.DeclareHandlerCondition_SqlState, String: d.SqlStateValue}
}

// signal executes SIGNAL, and RESIGNAL of raised.
func (b *body) signal(s *sqlparser.Signal, raised *mysql.SQLError) error {
	e := &mysql.SQLError{}
	if raised != nil {
		*e = *raised
	}
	state := s.SqlStateValue
	if s.ConditionName != "" {
		c := find(b, func(s *scope) map[string]sqlparser.DeclareHandlerCondition { return s.conditions }, s.ConditionName)
		if c.ValueType != sqlparser.DeclareHandlerCondition_SqlState {
			return myerr.SignalNoState.New()
		}
		state = c.String
	}
	if state != "" {
		if len(state) != 5 || strings.HasPrefix(state, "00") {
			return myerr.BadState.New(state)
		}
		*e = *userDefined(state).New()
		e.State = state
	}
	for _, item := range s.Info {
		if err := b.signalItem(e, item); err != nil {
			return err
		}
	}
	if strings.HasPrefix(e.State, "01") {
		return mild{e}
	}
	return e
}

// userDefined returns the kind of an error that was signalled with its SQLSTATE alone.
func userDefined(state string) myerr.Kind {
	switch state[:2] {
	case "01":
		return myerr.UserWarning
	case "02":
		return myerr.UserNotFound
	}
	return myerr.UserException
}

// signalItem sets an item of SIGNAL. Clients receive the number and the text only. The other
// items have no effect: GET DIAGNOSTICS, which would show them, does not exist here.
func (b *body) signalItem(e *mysql.SQLError, item sqlparser.SignalInfo) error {
	wrong := func(v any) error {
		return myerr.WrongValue.New(strings.ToUpper(string(item.ConditionItemName)), v)
	}
	v, _, err := b.value(item.Value)
	if err != nil {
		return err
	}
	if v == nil {
		return wrong("NULL")
	}
	switch item.ConditionItemName {
	case sqlparser.SignalConditionItemName_MessageText:
		text, ok := row.Text(v)
		if !ok {
			return wrong(v)
		}
		if len(text) > 128 {
			return myerr.LongMessageText.New()
		}
		e.Message = text
	case sqlparser.SignalConditionItemName_MysqlErrno:
		n, ok := row.WholeNumber(v)
		if !ok || n < 1 || n > 65535 {
			return wrong(v)
		}
		e.Num = int(n)
	}
	return nil
}

func (b *body) resignal(s *sqlparser.Resignal) error {
	if len(b.raised) == 0 {
		return myerr.ResignalInactive.New()
	}
	return b.signal(&s.Signal, b.raised[len(b.raised)-1])
}
