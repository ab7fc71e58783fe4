package routine

import (
	"context"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// A scope holds the declarations of a block of a stored procedure, by names in lower
// case.
type scope struct {
	variables  map[string]*variable
	cursors    map[string]*cursor
	conditions map[string]sqlparser.DeclareHandlerCondition
	handlers   []*sqlparser.DeclareHandler
	// handling is set while one of the handlers runs: a block's handlers do not handle
	// the errors of each other.
	handling bool
}

func newScope() *scope {
	return &scope{
		variables:  make(map[string]*variable),
		cursors:    make(map[string]*cursor),
		conditions: make(map[string]sqlparser.DeclareHandlerCondition),
	}
}

type variable struct {
	typ   gms.Type
	value any
}

// set assigns a value to a variable, converted to its type.
func (v *variable) set(ctx context.Context, value any) error {
	if types.IsDecimal(v.typ) {
		value = row.BoundedNumber(value)
	}
	c, inRange, err := v.typ.Convert(ctx, value)
	if err != nil {
		return err
	}
	if inRange != gms.InRange {
		return gms.ErrValueOutOfRange.New(value, v.typ)
	}
	v.value = c
	return nil
}

// A cursor is a declared cursor. While it is open, rows are those not fetched yet.
type cursor struct {
	query  sqlparser.SelectStatement
	isOpen bool
	schema gms.Schema
	rows   []gms.Row
}

// find looks something up by its name, in the innermost scope that has it; the zero T if none has. declared returns the
// map of a scope in which it looks.
func find[T any](b *body, declared func(*scope) map[string]T, name string) (found T) {
	name = strings.ToLower(name)
	for i := len(b.scopes) - 1; i >= 0; i-- {
		if v, ok := declared(b.scopes[i])[name]; ok {
			return v
		}
	}
	return found
}

func (b *body) variable(name string) *variable {
	return find(b, func(s *scope) map[string]*variable { return s.variables }, name)
}

func (b *body) cursor(name string) (*cursor, error) {
	c := find(b, func(s *scope) map[string]*cursor { return s.cursors }, name)
	if c == nil {
		return nil, gms.ErrCursorNotFound.New(name)
	}
	return c, nil
}

// declare adds what a DECLARE declares to the innermost block.
func (b *body) declare(d *sqlparser.Declare) error {
	scope := b.scopes[len(b.scopes)-1]
	switch {
	case d.Condition != nil:
		scope.conditions[strings.ToLower(d.Condition.Name)] = conditionOf(d.Condition)
	case d.Cursor != nil:
		scope.cursors[strings.ToLower(d.Cursor.Name)] = &cursor{query: d.Cursor.SelectStmt}
	case d.Handler != nil:
		scope.handlers = append(scope.handlers, d.Handler)
	case d.Variables != nil:
		return b.declareVariables(scope, d.Variables)
	}
	return nil
}

// declareVariables adds variables of one type to a block. Each begins with the DEFAULT, which is evaluated once.
func (b *body) declareVariables(block *scope, d *sqlparser.DeclareVariables) error {
	typ, err := types.ColumnTypeToType(&d.VarType)
	if err != nil {
		return err
	}
	var value any
	if d.VarType.Default != nil {
		if value, _, err = b.value(d.VarType.Default); err != nil {
			return err
		}
	}
	for _, name := range d.Names {
		v := &variable{typ: typ}
		if err := v.set(b.ctx, value); err != nil {
			return err
		}
		block.variables[name.Lowered()] = v
	}
	return nil
}

func (b *body) open(s *sqlparser.OpenCursor) error {
	c, err := b.cursor(s.Name)
	if err != nil {
		return err
	}
	if c.isOpen {
		return gms.ErrCursorAlreadyOpen.New(s.Name)
	}
	c.schema, c.rows, err = b.query(c.query)
	c.isOpen = err == nil
	return err
}

func (b *body) fetch(s *sqlparser.FetchCursor) error {
	c, err := b.cursor(s.Name)
	switch {
	case err != nil:
		return err
	case !c.isOpen:
		return gms.ErrCursorNotOpen.New(s.Name)
	case len(c.rows) == 0:
		return myerr.NoData.New()
	}
	row := c.rows[0]
	c.rows = c.rows[1:]
	return b.assign(s.Variables, c.schema, row, myerr.FetchVariables.New())
}

func (b *body) close(s *sqlparser.CloseCursor) error {
	c, err := b.cursor(s.Name)
	if err != nil {
		return err
	}
	if !c.isOpen {
		return gms.ErrCursorNotOpen.New(s.Name)
	}
	c.isOpen, c.rows = false, nil
	return nil
}
