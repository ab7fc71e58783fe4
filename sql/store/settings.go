package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/sql/row"
)

// Settings are the variables that every statement needs. They are read again only after a
// variable has been set.
type Settings struct {
	// Autocommit is set if each statement outside of a transaction is a transaction by
	// itself.
	Autocommit bool
	// Compile is set if no variable rules out compiled statements.
	Compile bool
	// Key has the values of the variables on which a statement's meaning depends.
	Key string
	// AnsiQuotes is set if double quotes enclose names, and not strings.
	AnsiQuotes bool
	// maxExecution bounds the time of a SELECT; 0: no bound.
	maxExecution time.Duration
	// longQuery is the least time that makes a statement count as slow; 0: all do.
	longQuery time.Duration
	// readOnly is set if transactions are READ ONLY by default.
	readOnly bool
	// notes is set if warnings of level Note are recorded; warningsMax bounds the number of
	// warnings of all levels.
	notes       bool
	warningsMax int64
	// divisions is set if a division by zero is a warning.
	divisions bool
	// zone is the session's time zone.
	zone *row.Zone
	// strict is set if a value that does not fit into its column is an error, and a text that is no number, too.
	strict bool
	// noZeroDate is set if, besides, 0000-00-00 is no date.
	noZeroDate bool
}

// keySettings are the variables that may change the meaning of a text.
var keySettings = []string{"sql_mode", "character_set_client", "character_set_connection", "collation_connection", "time_zone", "foreign_key_checks"}

// isSetting has the variables that readSettings reads.
var isSetting = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range append(keySettings, "autocommit", "sql_select_limit", "max_execution_time", "long_query_time", "transaction_read_only", "sql_notes", "max_error_count") {
		all[name] = true
	}
	return all
}()

// noteChange makes the next use of the settings read them again if they depend on a variable.
func (s *Session) noteChange(name string) {
	if isSetting[name] || isSetting[strings.ToLower(name)] {
		s.variables = nil
	}
}

// Settings returns the settings that follow from the present variables. The caller must not change
// them: they are shared.
func (s *Session) Settings() *Settings {
	if s.variables == nil {
		s.variables = s.readSettings()
	}
	return s.variables
}

// MaxExecutionTime bounds the time of a SELECT (max_execution_time); 0: no bound.
func (s *Session) MaxExecutionTime() time.Duration { return s.Settings().maxExecution }

// Autocommit reports whether each statement outside of a transaction is a transaction by
// itself.
func (s *Session) Autocommit() bool { return s.Settings().Autocommit }

// readSettings reads the settings from the session's variables. If one that the compiled forms depend on cannot be
// read, Compile is not set.
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
	r.AnsiQuotes = mode.ParserOptions().AnsiQuotes
	r.divisions = mode.ModeEnabled(gms.ErrorForDivisionByZero) || mode.ModeEnabled(gms.Traditional)
	r.strict = mode.Strict()
	r.noZeroDate = r.strict && (mode.ModeEnabled("NO_ZERO_DATE") || mode.ModeEnabled(gms.Traditional))
	if v, err := s.GetSessionVariable(ctx, "time_zone"); err == nil {
		r.zone, _ = row.ZoneOf(fmt.Sprint(v)) // SET refuses what is no zone
	}
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

// IsStrict reports whether a value that does not fit into its column is an error in a context's session: whether sql_mode
// is strict.
func IsStrict(ctx *gms.Context) bool {
	s, ok := ctx.Session.(ours)
	return !ok || s.base().Settings().strict
}

// zoneOf returns the time zone of a context's session.
func zoneOf(ctx *gms.Context) *row.Zone {
	if s, ok := ctx.Session.(ours); ok {
		return s.base().Settings().zone
	}
	return nil // go-mysql-server's own sessions
}

func (s *Session) isOn(ctx *gms.Context, name string) bool {
	v, err := s.GetSessionVariable(ctx, name)
	if err != nil {
		return false
	}
	on, err := gms.ConvertToBool(ctx, v)
	return on && err == nil
}

// globalOnly are the variables without a value per session, although go-mysql-server copies
// them into each session.
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

// LongQueryTime is the least time that makes a statement count as slow (long_query_time).
func (s *Session) LongQueryTime() time.Duration { return s.Settings().longQuery }

// Warn implements gms.Session.
func (s *Session) Warn(w *gms.Warning) {
	w = ignoredDuplicate(w)
	s.noteStrictly(w)
	r := s.Settings()
	isDivision := w.Code == expression.ERDivisionByZero
	isUnwanted := (w.Level == "Note" && !r.notes) || (isDivision && !r.divisions)
	if isUnwanted || int64(s.WarningCount()) >= r.warningsMax {
		return
	}
	s.baseSession.Warn(w)
}

// WantsWarning reports whether a further warning would be recorded.
func (s *Session) WantsWarning() bool { return int64(s.WarningCount()) < s.Settings().warningsMax }

// Warnings implements gms.Session: the oldest is the first, as SHOW WARNINGS shows them.
func (s *Session) Warnings() []*gms.Warning {
	all := s.baseSession.Warnings()
	slices.Reverse(all)
	return all
}

// ignoredDuplicate returns the warning about a row that INSERT IGNORE has left out as MySQL words it; other warnings as they are.
func ignoredDuplicate(w *gms.Warning) *gms.Warning {
	if w.Code != mysql.ERDupEntry {
		return w
	}
	_, text, ok := strings.Cut(w.Message, " key given: ") // the kind of go-mysql-server's error
	if !ok {
		return w
	}
	return &gms.Warning{Level: "Warning", Code: w.Code, Message: text}
}

// SetSessionVariable implements gms.Session.
func (s *Session) SetSessionVariable(ctx *gms.Context, name string, value any) error {
	s.noteChange(name)
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
	s.noteChange(name)
	return s.baseSession.InitSessionVariable(ctx, name, value)
}

// InitSessionVariableDefault implements gms.Session.
func (s *Session) InitSessionVariableDefault(ctx *gms.Context, name string, value any) error {
	s.noteChange(name)
	return s.baseSession.InitSessionVariableDefault(ctx, name, value)
}
