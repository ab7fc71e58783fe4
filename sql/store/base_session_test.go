package store

import (
	"maps"
	"reflect"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/variables"
)

// A session begins as one of go-mysql-server's does, and what it sets stays its own, though
// all share what they have not set.
func TestBaseSession(t *testing.T) {
	variables.InitStatusVariables() // as the first engine does
	client := gms.Client{User: "u", Address: "localhost", Capabilities: 7}
	theirs := gms.NewBaseSessionWithClientServer("server", client, 5)
	ours, other := newBaseSession("server", client, 5), newBaseSession("server", client, 6)
	if reflect.ValueOf(ours.shared).Pointer() != reflect.ValueOf(other.shared).Pointer() {
		t.Error("two sessions have two copies of all variables")
	}
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	ctx := gms.NewContext(t.Context(), gms.WithSession(ours))
	all := theirs.GetAllSessionVariables()
	same("variables", ours.GetAllSessionVariables(), all)
	for name := range all {
		got, err := ours.GetSessionVariable(ctx, name)
		want, err2 := theirs.GetSessionVariable(ctx, name)
		same(name, []any{got, err}, []any{want, err2})
		got, err = ours.GetSessionVariableDefault(ctx, name)
		want, err2 = theirs.GetSessionVariableDefault(ctx, name)
		same("default of "+name, []any{got, err}, []any{want, err2})
	}
	for name, v := range theirs.GetAllStatusVariables(ctx) {
		got, err := ours.GetStatusVariable(ctx, name)
		same(name, []any{got, err}, []any{v.Value(), nil})
	}
	same("names of status", len(maps.Clone(ours.GetAllStatusVariables(ctx))), len(theirs.GetAllStatusVariables(ctx)))
	same("character sets", []any{ours.GetCharacterSet(), ours.GetCharacterSetResults(), ours.GetCollation()},
		[]any{theirs.GetCharacterSet(), theirs.GetCharacterSetResults(), theirs.GetCollation()})
	same("rows found", ours.GetLastQueryInfo().FoundRows.Load(), theirs.GetLastQueryInfo().FoundRows.Load())
	same("who", []any{ours.Address(), ours.Client(), ours.ID()}, []any{theirs.Address(), theirs.Client(), theirs.ID()})

	for _, s := range []gms.Session{ours, theirs} {
		for name, value := range map[string]any{"sql_mode": "ANSI_QUOTES", "AUTOCOMMIT": 0, "character_set_results": "latin1", "collation_connection": "utf8mb4_bin"} {
			if err := s.SetSessionVariable(ctx, name, value); err != nil {
				t.Error(name, err)
			}
		}
		if err := s.SetSessionVariable(ctx, "version", "x"); !gms.ErrSystemVariableReadOnly.Is(err) {
			t.Error(err)
		}
		if err := s.SetSessionVariable(ctx, "nothing", 1); !gms.ErrUnknownSystemVariable.Is(err) {
			t.Error(err)
		}
		if err := s.SetStatusVariable(ctx, "Ssl_cipher", "x"); err != nil {
			t.Error(err)
		}
		s.IncrementStatusVariable(ctx, "nothing", 1)
	}
	same("variables that were set", ours.GetAllSessionVariables(), theirs.GetAllSessionVariables())
	same("character sets that were set", []any{ours.GetCharacterSetResults(), ours.GetCollation()}, []any{theirs.GetCharacterSetResults(), theirs.GetCollation()})
	same("cipher", ours.GetAllStatusVariables(ctx)["Ssl_cipher"].Value(), theirs.GetAllStatusVariables(ctx)["Ssl_cipher"].Value())
	same("another's variables", other.GetAllSessionVariables(), all)
	same("another's cipher", other.GetAllStatusVariables(ctx)["Ssl_cipher"].Value(), "")

	// A new value of a global variable is for later sessions only.
	defer gms.SystemVariables.AssignValues(map[string]any{"max_connections": all["max_connections"]})
	if err := gms.SystemVariables.AssignValues(map[string]any{"max_connections": int64(77)}); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[*baseSession]any{other: all["max_connections"], newBaseSession("server", client, 7): int64(77)} {
		got, err := s.GetSessionVariable(ctx, "max_connections")
		same("max_connections", []any{got, err}, []any{want, nil})
	}
}
