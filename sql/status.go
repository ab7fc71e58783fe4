package sql

import (
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/variables"
)

// A StatusSource returns a server's counters: of all its clients, or of the client with this
// id.
type StatusSource func(id uint32, isGlobal bool) map[string]uint64

// ShowStatusOf sets the source of SHOW STATUS.
func (e *Engine) ShowStatusOf(s StatusSource) { e.status.Store(&s) }

// showStatus executes SHOW STATUS: it shows only variables that are counted.
func (b *builder) showStatus(ctx *gms.Context, n *plan.ShowStatus) (gms.RowIter, error) {
	isGlobal := *n == *plan.NewShowStatus(true) // the node does not export the modifier
	shown := make(map[string]any)
	for name, v := range ctx.Session.GetAllStatusVariables(ctx) {
		shown[name] = v.Value()
	}
	if source := b.e.status.Load(); source != nil {
		for name, v := range (*source)(ctx.Session.ID(), isGlobal) {
			shown[name] = v
		}
	}
	rows := make([]gms.Row, 0, len(shown))
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		rows = append(rows, gms.NewRow(name, shown[name]))
	}
	return gms.RowsToRowIter(rows...), nil
}

// quietStatus replaces go-mysql-server's registry of status variables, which every statement
// writes to although few of its counters ever change. It holds only the variables that
// describe a session.
type quietStatus struct{ session map[string]gms.StatusVarValue }

// NewSessionMap implements gms.StatusVariableRegistry.
func (q quietStatus) NewSessionMap() map[string]gms.StatusVarValue {
	copied := make(map[string]gms.StatusVarValue, len(q.session))
	for name, v := range q.session { // any order
		copied[name] = v.Copy()
	}
	return copied
}

// NewGlobalMap implements gms.StatusVariableRegistry.
func (q quietStatus) NewGlobalMap() map[string]gms.StatusVarValue {
	return make(map[string]gms.StatusVarValue) // a new map: go-mysql-server adds to it
}

// GetGlobal implements gms.StatusVariableRegistry. go-mysql-server expects numbers.
func (q quietStatus) GetGlobal(string) (gms.StatusVariable, any, bool) { return nil, uint64(0), true }

// SetGlobal implements gms.StatusVariableRegistry.
func (q quietStatus) SetGlobal(string, any) error { return nil }

// IncrementGlobal implements gms.StatusVariableRegistry.
func (q quietStatus) IncrementGlobal(string, int) {}

// This runs before any engine exists: go-mysql-server keeps a registry that is already set.
func init() {
	variables.InitStatusVariables()
	all, kept := gms.StatusVariables.NewSessionMap(), make(map[string]gms.StatusVarValue)
	for _, name := range []string{"Ssl_cipher", "Ssl_version"} {
		kept[name] = all[name]
	}
	gms.StatusVariables = quietStatus{kept}
}
