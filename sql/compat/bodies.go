package compat

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// go-mysql-server accepts bodies of procedures and triggers that MySQL refuses to create: with
// undefined or duplicate labels, or with any text as a SQLSTATE.

// A label is the label of a statement around the one being checked.
type label struct {
	name   string
	isLoop bool
}

// CheckBody refuses bodies of procedures and triggers with undefined or duplicate labels, or
// with an invalid SQLSTATE.
func CheckBody(stmt sqlparser.Statement) error {
	d, ok := stmt.(*sqlparser.DDL)
	switch {
	case !ok:
		return nil
	case d.ProcedureSpec != nil:
		return checkLabels(nil, d.ProcedureSpec.Body)
	case d.TriggerSpec != nil:
		return checkLabels(nil, d.TriggerSpec.Body)
	}
	return nil
}

// checkLabels checks statements that are within the labels outer.
func checkLabels(outer []label, all ...sqlparser.Statement) error {
	for _, s := range all {
		if err := checkStatement(outer, s); err != nil {
			return err
		}
	}
	return nil
}

// checkStatement checks one statement that is within the labels outer.
func checkStatement(outer []label, s sqlparser.Statement) error {
	switch s := s.(type) {
	case *sqlparser.BeginEndBlock:
		return checkLabelled(outer, label{s.Label, false}, s.Statements)
	case *sqlparser.Loop:
		return checkLabelled(outer, label{s.Label, true}, s.Statements)
	case *sqlparser.While:
		return checkLabelled(outer, label{s.Label, true}, s.Statements)
	case *sqlparser.Repeat:
		return checkLabelled(outer, label{s.Label, true}, s.Statements)
	case *sqlparser.IfStatement:
		for _, c := range s.Conditions {
			if err := checkLabels(outer, c.Statements...); err != nil {
				return err
			}
		}
		return checkLabels(outer, s.Else...)
	case *sqlparser.CaseStatement:
		for _, c := range s.Cases {
			if err := checkLabels(outer, c.Statements...); err != nil {
				return err
			}
		}
		return checkLabels(outer, s.Else...)
	case *sqlparser.Leave:
		return checkJump("LEAVE", s.Label, outer)
	case *sqlparser.Iterate:
		return checkJump("ITERATE", s.Label, slices.DeleteFunc(slices.Clone(outer), func(l label) bool { return !l.isLoop }))
	case *sqlparser.Declare:
		return checkDeclare(s)
	case *sqlparser.Signal:
		return checkState(s.SqlStateValue)
	case *sqlparser.Resignal:
		return checkState(s.SqlStateValue)
	}
	return nil
}

// checkLabelled checks the statements within label l, which must not be one of the labels outer.
func checkLabelled(outer []label, l label, all sqlparser.Statements) error {
	if l.name == "" {
		return checkLabels(outer, all...)
	}
	if slices.ContainsFunc(outer, l.isSame) {
		return myerr.LabelTwice.New(l.name)
	}
	return checkLabels(append(slices.Clone(outer), l), all...)
}

func (l label) isSame(other label) bool { return strings.EqualFold(l.name, other.name) }

// checkJump refuses LEAVE or ITERATE (verb) to a label that is not one of the labels outer.
func checkJump(verb, to string, outer []label) error {
	if slices.ContainsFunc(outer, label{name: to}.isSame) {
		return nil
	}
	return myerr.NoSuchLabel.New(verb, to)
}

// checkDeclare checks a declaration. A handler's body cannot refer to the labels around the
// declaration.
func checkDeclare(d *sqlparser.Declare) error {
	if d.Condition != nil {
		return checkState(d.Condition.SqlStateValue)
	}
	if d.Handler == nil {
		return nil
	}
	for _, c := range d.Handler.ConditionValues {
		if c.ValueType == sqlparser.DeclareHandlerCondition_SqlState {
			if err := checkState(c.String); err != nil {
				return err
			}
		}
	}
	return checkLabels(nil, d.Handler.Statement)
}

var sqlState = regexp.MustCompile("^[0-9A-Z]{5}$")

// checkState refuses a SQLSTATE that cannot be an error's or a warning's. An empty one is
// allowed.
func checkState(state string) error {
	if state == "" || (sqlState.MatchString(state) && !strings.HasPrefix(state, "00")) {
		return nil
	}
	return myerr.BadState.New(state)
}
