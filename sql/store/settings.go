package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// Settings are the session's variables that every statement asks for, read when one has
// been set and not with every statement.
type Settings struct {
	// Autocommit says that each statement outside of a transaction is one.
	Autocommit bool
	// Compile says that nothing in the variables speaks against compiled
	// statements.
	Compile bool
	// Key holds what the meaning of a statement depends on.
	Key string
	// maxExecution is how long a SELECT may take; 0: as long as it takes.
	maxExecution time.Duration
	// longQuery is what a statement takes that is slow; 0: all are.
	longQuery time.Duration
	// readOnly says that transactions are READ ONLY unless they say otherwise.
	readOnly bool
	// notes says that warnings of the level Note count, of which, and of others, there are
	// warningsMax at most.
	notes       bool
	warningsMax int64
	// divisions says that a division by zero is worth a warning.
	divisions bool
	// strictDivisions says that in a change it is an error.
	strictDivisions bool
}

// keySettings are the variables that may change the meaning of a text.
var keySettings = []string{"sql_mode", "character_set_client", "character_set_connection", "collation_connection", "time_zone", "foreign_key_checks"}

// Settings returns the settings as the variables are now. They are shared, and not changed.
func (s *Session) Settings() *Settings {
	if s.variables == nil {
		s.variables = s.readSettings()
	}
	return s.variables
}

// MaxExecutionTime is how long a SELECT may take (max_execution_time); 0 is for ever.
func (s *Session) MaxExecutionTime() time.Duration { return s.Settings().maxExecution }

// Autocommit reports whether each statement outside of a transaction is one.
func (s *Session) Autocommit() bool { return s.Settings().Autocommit }

func (s *Session) readSettings() *Settings {
	ctx := gms.NewContext(context.Background(), gms.WithSession(s))
	r := &Settings{Compile: true}
	var err error
	if r.Autocommit, err = plan.IsSessionAutocommit(ctx); err != nil {
		return &Settings{}
	}
	if unlimited, _ := gms.HasDefaultValue(ctx, s, "sql_select_limit"); !unlimited {
		r.Compile = false
	}
	if v, err := s.GetSessionVariable(ctx, "max_execution_time"); err == nil {
		ms, _ := v.(int64)
		r.maxExecution = time.Duration(ms) * time.Millisecond
	}
	if v, err := s.GetSessionVariable(ctx, "long_query_time"); err == nil {
		seconds, _ := v.(float64)
		r.longQuery = time.Duration(seconds * float64(time.Second))
	}
	r.readOnly = s.isOn(ctx, "transaction_read_only")
	r.notes = s.isOn(ctx, "sql_notes")
	mode := gms.LoadSqlMode(ctx)
	r.divisions = mode.ModeEnabled(gms.ErrorForDivisionByZero) || mode.ModeEnabled(gms.Traditional)
	r.strictDivisions = r.divisions && mode.Strict()
	r.warningsMax = 1024
	if v, err := s.GetSessionVariable(ctx, "max_error_count"); err == nil {
		r.warningsMax, _ = v.(int64)
	}
	for _, name := range keySettings {
		v, err := s.GetSessionVariable(ctx, name)
		if err != nil {
			r.Compile = false
		}
		r.Key += fmt.Sprint(v, "\x00")
	}
	return r
}

func (s *Session) isOn(ctx *gms.Context, name string) bool {
	v, err := s.GetSessionVariable(ctx, name)
	if err != nil {
		return false
	}
	on, err := gms.ConvertToBool(ctx, v)
	return on && err == nil
}

// globalOnly are the variables that no session has a value of its own of, though
// go-mysql-server makes each a copy.
var globalOnly = func() map[string]bool {
	all := make(map[string]bool)
	for name, v := range gms.SystemVariables.NewSessionMap() {
		all[name] = v.Var.IsGlobalOnly()
	}
	return all
}()

// GetSessionVariable implements gms.Session.
func (s *Session) GetSessionVariable(ctx *gms.Context, name string) (any, error) {
	if globalOnly[name] || globalOnly[strings.ToLower(name)] {
		if _, v, ok := gms.SystemVariables.GetGlobal(name); ok {
			return v, nil
		}
	}
	if strings.EqualFold(name, timestampName) {
		return s.readTimestamp(ctx), nil
	}
	return s.baseSession.GetSessionVariable(ctx, name)
}

// GetAllSessionVariables implements gms.Session.
func (s *Session) GetAllSessionVariables() map[string]any {
	all := s.baseSession.GetAllSessionVariables()
	for name := range all {
		if !globalOnly[name] {
			continue
		}
		if _, v, ok := gms.SystemVariables.GetGlobal(name); ok {
			all[name] = v
		}
	}
	return all
}

// LongQueryTime is what a statement takes that is slow (long_query_time).
func (s *Session) LongQueryTime() time.Duration { return s.Settings().longQuery }

// Warn implements gms.Session.
func (s *Session) Warn(w *gms.Warning) {
	r := s.Settings()
	if w.Code == expression.ERDivisionByZero && r.strictDivisions && s.changing {
		s.divided = true
	}
	if w.Level == "Note" && !r.notes || w.Code == expression.ERDivisionByZero && !r.divisions || int64(s.WarningCount()) >= r.warningsMax {
		return
	}
	s.baseSession.Warn(w)
}

// SetSessionVariable implements gms.Session.
func (s *Session) SetSessionVariable(ctx *gms.Context, name string, value any) error {
	s.variables = nil
	if err := s.baseSession.SetSessionVariable(ctx, name, value); err != nil {
		return err
	}
	if strings.EqualFold(name, timestampName) {
		s.setTimestamp(ctx)
	}
	return nil
}

// InitSessionVariable implements gms.Session.
func (s *Session) InitSessionVariable(ctx *gms.Context, name string, value any) error {
	s.variables = nil
	return s.baseSession.InitSessionVariable(ctx, name, value)
}

// InitSessionVariableDefault implements gms.Session.
func (s *Session) InitSessionVariableDefault(ctx *gms.Context, name string, value any) error {
	s.variables = nil
	return s.baseSession.InitSessionVariableDefault(ctx, name, value)
}
