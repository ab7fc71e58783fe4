package sql

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// This file stores triggers, stored procedures and events, as text that
// go-mysql-server parses and runs.

// GetTriggers implements gms.TriggerDatabase. It returns the triggers in the order of their
// creation, which is the order in which they run.
func (d *Database) GetTriggers(ctx *gms.Context) ([]gms.TriggerDefinition, error) {
	return inOrder(d.e.Store.Catalog.Definitions(store.Began(ctx).Tx, catalog.Trigger, d.name))
}

// TableTriggers implements trigger.Database. The transaction does not depend on the triggers of other
// tables.
func (d *Database) TableTriggers(ctx *gms.Context, table string) ([]gms.TriggerDefinition, error) {
	return inOrder(d.e.Store.Catalog.Triggers(store.Began(ctx).Tx, d.name, table))
}

// inOrder returns triggers in the order of their creation.
func inOrder(defs []*catalog.Definition, err error) ([]gms.TriggerDefinition, error) {
	if err != nil {
		return nil, myerr.Storage(err)
	}
	all := make([]gms.TriggerDefinition, len(defs))
	for i, v := range defs {
		all[i] = gms.TriggerDefinition{Name: v.Name, CreateStatement: v.Statement, CreatedAt: time.Unix(0, v.Created).UTC(), SqlMode: v.SQLMode}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].CreatedAt.Before(all[j].CreatedAt) })
	return all, nil
}

// triggerTable returns the name of the table that a trigger belongs to, or "" if its text cannot be
// read.
func triggerTable(d *catalog.Definition) string {
	ast, _, err := parser{}.ParseOneWithOptions(context.Background(), d.Statement, gms.NewSqlModeFromString(d.SQLMode).ParserOptions())
	create, ok := ast.(*sqlparser.DDL)
	if err != nil || !ok || create.TriggerSpec == nil {
		return ""
	}
	return create.Table.Name.String()
}

// CreateTrigger implements gms.TriggerDatabase.
func (d *Database) CreateTrigger(ctx *gms.Context, v gms.TriggerDefinition) error {
	return d.create(ctx, catalog.Trigger, &catalog.Definition{
		Name: v.Name, Statement: v.CreateStatement, Created: v.CreatedAt.UnixNano(), SQLMode: v.SqlMode,
	}, myerr.TriggerExists.New())
}

// DropTrigger implements gms.TriggerDatabase.
func (d *Database) DropTrigger(ctx *gms.Context, name string) error {
	return d.drop(ctx, catalog.Trigger, name, gms.ErrTriggerDoesNotExist.New(name))
}

// create stores a definition. If the name is taken, it returns the error exists.
func (d *Database) create(ctx *gms.Context, kind catalog.Definer, v *catalog.Definition, exists error) error {
	tr, err := store.DDL(ctx)
	if err != nil {
		return err
	}
	err = d.e.Store.Catalog.CreateDefinition(tr.Tx, kind, d.name, v)
	if errors.Is(err, catalog.ErrExists) {
		return exists
	}
	return tr.Fail(err)
}

// get finds a definition by its name, in any case.
func (d *Database) get(ctx *gms.Context, kind catalog.Definer, name string) (*catalog.Definition, bool, error) {
	v, err := d.e.Store.Catalog.Definition(store.Began(ctx).Tx, kind, d.name, name)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, false, nil
	}
	return v, err == nil, myerr.Storage(err)
}

func gmsProcedure(v *catalog.Definition) gms.StoredProcedureDetails {
	return gms.StoredProcedureDetails{
		Name: v.Name, CreateStatement: v.Statement, SqlMode: v.SQLMode,
		CreatedAt: time.Unix(0, v.Created).UTC(), ModifiedAt: time.Unix(0, v.Modified).UTC(),
	}
}

// GetStoredProcedure implements gms.StoredProcedureDatabase.
func (d *Database) GetStoredProcedure(ctx *gms.Context, name string) (gms.StoredProcedureDetails, bool, error) {
	v, ok, err := d.get(ctx, catalog.Procedure, name)
	if !ok {
		return gms.StoredProcedureDetails{}, false, err
	}
	return gmsProcedure(v), true, nil
}

// GetStoredProcedures implements gms.StoredProcedureDatabase.
func (d *Database) GetStoredProcedures(ctx *gms.Context) ([]gms.StoredProcedureDetails, error) {
	return definitions(ctx, d, catalog.Procedure, gmsProcedure)
}

// SaveStoredProcedure implements gms.StoredProcedureDatabase.
func (d *Database) SaveStoredProcedure(ctx *gms.Context, p gms.StoredProcedureDetails) error {
	text, err := d.e.routines.WithDefiner(ctx, p.CreateStatement)
	if err != nil {
		return err
	}
	return d.create(ctx, catalog.Procedure, &catalog.Definition{
		Name: p.Name, Statement: text, SQLMode: p.SqlMode,
		Created: p.CreatedAt.UnixNano(), Modified: p.ModifiedAt.UnixNano(),
	}, gms.ErrStoredProcedureAlreadyExists.New(p.Name))
}

// DropStoredProcedure implements gms.StoredProcedureDatabase.
func (d *Database) DropStoredProcedure(ctx *gms.Context, name string) error {
	return d.drop(ctx, catalog.Procedure, name, gms.ErrStoredProcedureDoesNotExist.New(d.name+"."+name))
}

// storedEvent returns the definition that stores an event: as JSON, with its times.
func storedEvent(v gms.EventDefinition) (*catalog.Definition, error) {
	b, err := json.Marshal(v)
	return &catalog.Definition{Name: v.Name, Extra: b}, err
}

func gmsEvent(v *catalog.Definition) (e gms.EventDefinition) {
	// A definition that does not decode was not written by storedEvent; it is shown
	// as an event with nothing but a name.
	if json.Unmarshal(v.Extra, &e) != nil {
		e = gms.EventDefinition{Name: v.Name}
	}
	return e
}

// GetEvent implements gms.EventDatabase.
func (d *Database) GetEvent(ctx *gms.Context, name string) (gms.EventDefinition, bool, error) {
	v, ok, err := d.get(ctx, catalog.Event, name)
	if !ok {
		return gms.EventDefinition{}, false, err
	}
	return gmsEvent(v), true, nil
}

// GetEvents implements gms.EventDatabase.
func (d *Database) GetEvents(ctx *gms.Context) ([]gms.EventDefinition, any, error) {
	all, err := definitions(ctx, d, catalog.Event, gmsEvent)
	return all, nil, err
}

// SaveEvent implements gms.EventDatabase.
func (d *Database) SaveEvent(ctx *gms.Context, v gms.EventDefinition) (bool, error) {
	s, err := storedEvent(v)
	if err != nil {
		return false, err
	}
	err = d.create(ctx, catalog.Event, s, gms.ErrEventAlreadyExists.New(v.Name))
	return v.Status == gms.EventStatus_Enable.String(), err
}

// DropEvent implements gms.EventDatabase.
func (d *Database) DropEvent(ctx *gms.Context, name string) error {
	return d.drop(ctx, catalog.Event, name, gms.ErrEventDoesNotExist.New(name))
}

// UpdateEvent implements gms.EventDatabase.
func (d *Database) UpdateEvent(ctx *gms.Context, old string, v gms.EventDefinition) (bool, error) {
	if !store.SameName(old, v.Name) {
		_, exists, err := d.get(ctx, catalog.Event, v.Name)
		if err != nil {
			return false, err
		}
		if exists {
			return false, gms.ErrEventAlreadyExists.New(v.Name)
		}
	}
	if err := d.DropEvent(ctx, old); err != nil {
		return false, err
	}
	return d.SaveEvent(ctx, v)
}

// UpdateLastExecuted implements gms.EventDatabase.
func (d *Database) UpdateLastExecuted(ctx *gms.Context, name string, at time.Time) error {
	v, ok, err := d.GetEvent(ctx, name)
	if err != nil {
		return err
	}
	if !ok {
		return gms.ErrEventDoesNotExist.New(name)
	}
	v.LastExecuted = at
	s, err := storedEvent(v)
	if err != nil {
		return err
	}
	return myerr.Storage(d.e.Store.Catalog.UpdateDefinition(store.Began(ctx).Tx, catalog.Event, d.name, s))
}

// NeedsToReloadEvents implements gms.EventDatabase.
func (d *Database) NeedsToReloadEvents(*gms.Context, any) (bool, error) { return false, nil }
