package sql

import (
	"context"
	"fmt"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// compiledSettings are the session's variables that compiled statements ask for,
// read when one has been set and not with every statement.
type compiledSettings struct {
	autocommit bool
	// compile says that nothing in the variables speaks against compiled
	// statements.
	compile bool
	// key holds what the meaning of a statement depends on.
	key string
	// maxExecution is how long a SELECT may take; 0: as long as it takes.
	maxExecution time.Duration
}

// keySettings are the variables that may change the meaning of a text.
var keySettings = []string{"sql_mode", "character_set_client", "character_set_connection", "collation_connection", "time_zone", "foreign_key_checks"}

func (s *Session) settings() *compiledSettings {
	if s.variables == nil {
		s.variables = s.readSettings()
	}
	return s.variables
}

// MaxExecutionTime is how long a SELECT may take (max_execution_time); 0 is for ever.
func (s *Session) MaxExecutionTime() time.Duration { return s.settings().maxExecution }

// Autocommit reports whether each statement outside of a transaction is one.
func (s *Session) Autocommit() bool { return s.settings().autocommit }

func (s *Session) readSettings() *compiledSettings {
	ctx := gms.NewContext(context.Background(), gms.WithSession(s))
	r := &compiledSettings{compile: true}
	var err error
	if r.autocommit, err = plan.IsSessionAutocommit(ctx); err != nil {
		return &compiledSettings{}
	}
	if unlimited, _ := gms.HasDefaultValue(ctx, s, "sql_select_limit"); !unlimited {
		r.compile = false
	}
	if v, err := s.GetSessionVariable(ctx, "max_execution_time"); err == nil {
		ms, _ := v.(int64)
		r.maxExecution = time.Duration(ms) * time.Millisecond
	}
	for _, name := range keySettings {
		v, err := s.GetSessionVariable(ctx, name)
		if err != nil {
			r.compile = false
		}
		r.key += fmt.Sprint(v, "\x00")
	}
	return r
}

// SetSessionVariable implements gms.Session.
func (s *Session) SetSessionVariable(ctx *gms.Context, name string, value any) error {
	s.variables = nil
	return s.BaseSession.SetSessionVariable(ctx, name, value)
}

// InitSessionVariable implements gms.Session.
func (s *Session) InitSessionVariable(ctx *gms.Context, name string, value any) error {
	s.variables = nil
	return s.BaseSession.InitSessionVariable(ctx, name, value)
}

// InitSessionVariableDefault implements gms.Session.
func (s *Session) InitSessionVariableDefault(ctx *gms.Context, name string, value any) error {
	s.variables = nil
	return s.BaseSession.InitSessionVariableDefault(ctx, name, value)
}
