package store

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
	"github.com/sirupsen/logrus"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// A baseSession replaces go-mysql-server's BaseSession, which copies every variable into every
// session (80 KB). The embedded BaseSession is not initialized: only methods that need none of its
// maps may be called.
type baseSession struct {
	gms.BaseSession
	server   string
	user     gms.SessionUserVariables
	last     gms.LastQueryInfo
	locks    map[string]bool
	params   map[string]*gms.StoredProcParam
	prepared map[string]sqlparser.Statement
	cached   map[string]sqlparser.Statement

	// shared are the values of system variables when the session began; own are the values that
	// the session has set since. results caches character_set_results.
	shared, own map[string]gms.SystemVarValue
	results     gms.CharacterSetID

	log struct {
		lockrank.Mutex[lockrank.Leaf]
		entry *logrus.Entry
	}

	counts struct {
		lockrank.Mutex[lockrank.Leaf]
		own map[string]gms.StatusVarValue // the status variables that have changed
	}
}

// GetLogger implements gms.Session. The listener's watch for gone clients calls it while a statement may change
// the current database, which the log names: information_schema.triggers does.
func (s *baseSession) GetLogger() *logrus.Entry {
	s.log.Lock()
	defer s.log.Unlock()
	if s.log.entry == nil {
		s.log.entry = logrus.NewEntry(logrus.StandardLogger())
	}
	return s.log.entry
}

// SetLogger implements gms.Session.
func (s *baseSession) SetLogger(l *logrus.Entry) {
	s.log.Lock()
	defer s.log.Unlock()
	s.log.entry = l
}

// SetCurrentDatabase implements gms.Session.
func (s *baseSession) SetCurrentDatabase(name string) {
	s.BaseSession.SetCurrentDatabase(name)
	s.SetLogger(s.GetLogger().WithField(gms.ConnectionDbLogField, name))
}

// noIndexes is the registry of drivers' indexes; there are none.
var noIndexes = gms.NewIndexRegistry()

func newBaseSession(server string, client gms.Client, id uint32) *baseSession {
	s := &baseSession{
		server: server, user: gms.NewUserVars(), shared: sharedVariables(),
		locks: make(map[string]bool), params: make(map[string]*gms.StoredProcParam),
		prepared: make(map[string]sqlparser.Statement), cached: make(map[string]sqlparser.Statement),
		own: make(map[string]gms.SystemVarValue),
	}
	s.SetClient(client)
	s.SetConnectionId(id)
	s.SetIndexRegistry(noIndexes)
	s.SetViewRegistry(gms.NewViewRegistry())
	s.last.FoundRows.Store(1) // the value before the first statement, as in MySQL
	s.last.LastInsertUUID.Store("")
	s.counts.own = make(map[string]gms.StatusVarValue)
	return s
}

// latestVariables are the values with which the latest session began.
var latestVariables atomic.Pointer[map[string]gms.SystemVarValue]

// sharedVariables returns the present values of all system variables. Sessions share one map, which is never changed:
// when a value has changed, the next session gets a new map.
func sharedVariables() map[string]gms.SystemVarValue {
	now := gms.SystemVariables.NewSessionMap()
	if latest := latestVariables.Load(); latest != nil && (isSameMap(*latest, now) || maps.EqualFunc(*latest, now, sameVariable)) {
		return *latest
	}
	latestVariables.Store(&now)
	return now
}

// isSameMap reports whether two variables hold one map.
func isSameMap(a, b map[string]gms.SystemVarValue) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func sameVariable(a, b gms.SystemVarValue) bool {
	t := reflect.TypeOf(a.Val)
	return a.Var == b.Var && t == reflect.TypeOf(b.Val) && (t == nil || (t.Comparable() && a.Val == b.Val))
}

// variable returns a system variable's value; name is in lower case.
func (s *baseSession) variable(name string) (gms.SystemVarValue, bool) {
	if v, ok := s.own[name]; ok {
		return v, true
	}
	v, ok := s.shared[name]
	return v, ok
}

// setVariable stores a value in the session, unless err is set; then it returns err.
func (s *baseSession) setVariable(name string, v gms.SystemVarValue, err error) error {
	if err != nil {
		return err
	}
	s.own[name] = v
	s.results = gms.CharacterSet_Unspecified
	return nil
}

// shown returns a variable's value as clients see it: a set as the names of its members.
func shown(v gms.SystemVariable, value any) (any, error) {
	set, ok := v.GetType().(gms.SetType)
	if bits, isBits := value.(uint64); ok && isBits {
		return set.BitsToString(bits)
	}
	return value, nil
}

// GetSessionVariable implements gms.Session.
func (s *baseSession) GetSessionVariable(_ *gms.Context, name string) (any, error) {
	v, ok := s.variable(strings.ToLower(name))
	if !ok {
		return nil, gms.ErrUnknownSystemVariable.New(name)
	}
	return shown(v.Var, v.Val)
}

// GetSessionVariableDefault implements gms.Session.
func (s *baseSession) GetSessionVariableDefault(_ *gms.Context, name string) (any, error) {
	v, ok := s.variable(strings.ToLower(name))
	if !ok {
		return nil, gms.ErrUnknownSystemVariable.New(name)
	}
	return shown(v.Var, v.Var.GetDefault())
}

// GetAllSessionVariables implements gms.Session.
func (s *baseSession) GetAllSessionVariables() map[string]any {
	all := make(map[string]any, len(s.shared))
	add := func(name string, v gms.SystemVarValue) {
		if value, err := shown(v.Var, v.Val); err == nil {
			all[name] = value
		}
	}
	for name, v := range s.shared { // any order
		add(name, v)
	}
	for name, v := range s.own { // any order
		add(name, v)
	}
	return all
}

// SetSessionVariable implements gms.Session.
func (s *baseSession) SetSessionVariable(ctx *gms.Context, name string, value any) error {
	name = strings.ToLower(name)
	v, ok := s.variable(name)
	if !ok { // the variable was added after the session began
		if v.Var, _, ok = gms.SystemVariables.GetGlobal(name); !ok {
			return gms.ErrUnknownSystemVariable.New(name)
		}
	} else if v.Var.IsReadOnly() {
		return gms.ErrSystemVariableReadOnly.New(name)
	}
	set, err := v.Var.SetValue(ctx, value, false)
	return s.setVariable(name, set, err)
}

// InitSessionVariable implements gms.Session.
func (s *baseSession) InitSessionVariable(ctx *gms.Context, name string, value any) error {
	v, _, ok := gms.SystemVariables.GetGlobal(name)
	if !ok {
		return gms.ErrUnknownSystemVariable.New(name)
	}
	name = strings.ToLower(name)
	if now, ok := s.variable(name); ok && now.Val != v.GetDefault() {
		return gms.ErrSystemVariableReinitialized.New(name)
	}
	set, err := v.InitValue(ctx, value, false)
	return s.setVariable(name, set, err)
}

// InitSessionVariableDefault implements gms.Session.
func (s *baseSession) InitSessionVariableDefault(ctx *gms.Context, name string, value any) error {
	v, _, ok := gms.SystemVariables.GetGlobal(name)
	if !ok {
		return gms.ErrUnknownSystemVariable.New(name)
	}
	v.SetDefault(value)
	set, err := v.InitValue(ctx, value, false)
	return s.setVariable(strings.ToLower(name), set, err)
}

// charset returns the character set that a system variable names; the variable's type has
// validated the name.
func (s *baseSession) charset(variable string) gms.CharacterSetID {
	v, _ := s.variable(variable)
	name, ok := v.Val.(string)
	if !ok {
		return gms.CharacterSet_Unspecified
	}
	id, err := gms.ParseCharacterSet(name)
	if err != nil {
		return gms.CharacterSet_Unspecified
	}
	return id
}

// GetCharacterSet implements gms.Session.
func (s *baseSession) GetCharacterSet() gms.CharacterSetID {
	return s.charset("character_set_connection")
}

// GetCharacterSetResults implements gms.Session.
func (s *baseSession) GetCharacterSetResults() gms.CharacterSetID {
	if s.results == gms.CharacterSet_Unspecified {
		s.results = s.charset("character_set_results")
	}
	return s.results
}

// GetCollation implements gms.Session.
func (s *baseSession) GetCollation() gms.CollationID {
	v, _ := s.variable("collation_connection")
	name, ok := v.Val.(string)
	if !ok {
		return gms.Collation_Unspecified
	}
	id, err := gms.ParseCollation("", name, false)
	if err != nil {
		return gms.Collation_Unspecified
	}
	return id
}

// firstCounts are the status variables of a session that has done nothing. They are never
// changed.
var firstCounts = sync.OnceValue(func() map[string]gms.StatusVarValue { return gms.StatusVariables.NewSessionMap() })

// countsLocked returns the session's own copy of a status variable; nil if there is none of
// that name.
func (s *baseSession) countsLocked(name string) gms.StatusVarValue {
	v := s.counts.own[name]
	if first := firstCounts()[name]; v == nil && first != nil {
		v = first.Copy()
		s.counts.own[name] = v
	}
	return v
}

// GetStatusVariable implements gms.Session.
func (s *baseSession) GetStatusVariable(_ *gms.Context, name string) (any, error) {
	s.counts.Lock()
	defer s.counts.Unlock()
	if v := s.countsLocked(name); v != nil {
		return v.Value(), nil
	}
	return nil, gms.ErrUnknownSystemVariable.New(name)
}

// SetStatusVariable implements gms.Session.
func (s *baseSession) SetStatusVariable(_ *gms.Context, name string, value any) error {
	s.counts.Lock()
	defer s.counts.Unlock()
	if v := s.countsLocked(name); v != nil {
		return v.Set(value)
	}
	return gms.ErrUnknownSystemVariable.New(name)
}

// GetAllStatusVariables implements gms.Session.
func (s *baseSession) GetAllStatusVariables(*gms.Context) map[string]gms.StatusVarValue {
	all := maps.Clone(firstCounts())
	s.counts.Lock()
	defer s.counts.Unlock()
	maps.Copy(all, s.counts.own)
	return all
}

// IncrementStatusVariable implements gms.Session.
func (s *baseSession) IncrementStatusVariable(_ *gms.Context, name string, by int) {
	s.counts.Lock()
	defer s.counts.Unlock()
	if v := s.countsLocked(name); v != nil {
		_ = v.Increment(uint64(by)) // fails for variables that are not numbers; they are not counted
	}
}

// Address implements gms.Session.
func (s *baseSession) Address() string { return s.server }

// GetLastQueryInfo implements gms.Session.
func (s *baseSession) GetLastQueryInfo() *gms.LastQueryInfo { return &s.last }

// SetUserVariable implements gms.Session.
func (s *baseSession) SetUserVariable(ctx *gms.Context, name string, value any, t gms.Type) error {
	return s.user.SetUserVariable(ctx, name, value, t)
}

// GetUserVariable implements gms.Session.
func (s *baseSession) GetUserVariable(ctx *gms.Context, name string) (gms.Type, any, error) {
	return s.user.GetUserVariable(ctx, name)
}

// NewStoredProcParam implements gms.Session.
func (s *baseSession) NewStoredProcParam(name string, p *gms.StoredProcParam) *gms.StoredProcParam {
	if there := s.GetStoredProcParam(name); there != nil {
		return there
	}
	s.params[strings.ToLower(name)] = p
	return p
}

// GetStoredProcParam implements gms.Session.
func (s *baseSession) GetStoredProcParam(name string) *gms.StoredProcParam {
	return s.params[strings.ToLower(name)]
}

// SetStoredProcParam implements gms.Session.
func (s *baseSession) SetStoredProcParam(name string, value any) error {
	p := s.GetStoredProcParam(name)
	if p == nil {
		return fmt.Errorf("variable `%s` could not be found", name)
	}
	p.SetValue(value)
	return nil
}

// AddLock implements gms.Session.
func (s *baseSession) AddLock(name string) error {
	s.locks[name] = true
	return nil
}

// DelLock implements gms.Session.
func (s *baseSession) DelLock(name string) error {
	delete(s.locks, name)
	return nil
}

// IterLocks implements gms.Session.
func (s *baseSession) IterLocks(do func(name string) error) error {
	for name := range s.locks { // any order
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}

// PrepareQuery implements gms.Session.
func (s *baseSession) PrepareQuery(query string, stmt sqlparser.Statement) {
	s.prepared[strings.ToLower(query)] = stmt
}

// UnprepareQuery implements gms.Session.
func (s *baseSession) UnprepareQuery(query string) { delete(s.prepared, strings.ToLower(query)) }

// GetPreparedQuery implements gms.Session.
func (s *baseSession) GetPreparedQuery(query string) (sqlparser.Statement, bool) {
	stmt, ok := s.prepared[strings.ToLower(query)]
	return stmt, ok
}

// CacheQuery implements gms.Session.
func (s *baseSession) CacheQuery(query string, stmt sqlparser.Statement) { s.cached[query] = stmt }

// GetCachedQuery implements gms.Session.
func (s *baseSession) GetCachedQuery(query string) (sqlparser.Statement, bool) {
	stmt, ok := s.cached[query]
	return stmt, ok
}
