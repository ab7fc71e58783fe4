package sql

import (
	"errors"
	"io"
	"maps"
	"strings"

	"github.com/dolthub/go-mysql-server/memory"
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/store"
)

// statistics keep one go-mysql-server provider for each table, under a lock. With a single
// provider, ANALYZE TABLE would write a map that the planning of other statements reads at the
// same time, which ends the process. A single provider would also take the statistics of a table
// t2 for those of t.
type statistics struct {
	mu     lockrank.RWMutex[lockrank.Leaf]
	tables map[string]*memory.StatsProv // providers by database and table, in lower case
}

var _ gms.StatsProvider = (*statistics)(nil)

func newStatistics() *statistics { return &statistics{tables: make(map[string]*memory.StatsProv)} }

func statisticsKey(db, table string) string {
	return strings.ToLower(db) + "." + strings.ToLower(table)
}

// AnalyzeTable implements gms.StatsProvider. It records nothing for a table without rows, or
// with an index of bytes: go-mysql-server divides by the number of rows, and compares values
// with Go's operators, which panic for bytes.
func (s *statistics) AnalyzeTable(ctx *gms.Context, table gms.Table, db string) error {
	if indexesBytes(table) {
		return nil
	}
	empty, err := isEmpty(ctx, table)
	if empty || err != nil {
		return err
	}
	latest := memory.NewStatsProv() // analyze outside the lock: nobody waits while the table is read
	if err := latest.AnalyzeTable(ctx, table, db); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[statisticsKey(db, table.Name())] = latest
	return nil
}

// GetTableStats implements gms.StatsProvider.
func (s *statistics) GetTableStats(ctx *gms.Context, db string, table gms.Table) ([]gms.Statistic, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[statisticsKey(db, table.Name())]; t != nil {
		return t.GetTableStats(ctx, db, table)
	}
	return nil, nil
}

// SetStats implements gms.StatsProvider.
func (s *statistics) SetStats(ctx *gms.Context, stat gms.Statistic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := statisticsKey(stat.Qualifier().Db(), stat.Qualifier().Table())
	if s.tables[key] == nil {
		s.tables[key] = memory.NewStatsProv()
	}
	return s.tables[key].SetStats(ctx, stat)
}

// GetStats implements gms.StatsProvider.
func (s *statistics) GetStats(ctx *gms.Context, name gms.StatQualifier, columns []string) (gms.Statistic, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[statisticsKey(name.Db(), name.Table())]; t != nil {
		return t.GetStats(ctx, name, columns)
	}
	return nil, false
}

// DropStats implements gms.StatsProvider.
func (s *statistics) DropStats(ctx *gms.Context, name gms.StatQualifier, columns []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[statisticsKey(name.Db(), name.Table())]; t != nil {
		return t.DropStats(ctx, name, columns)
	}
	return nil
}

// DropDbStats implements gms.StatsProvider.
func (s *statistics) DropDbStats(_ *gms.Context, db string, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tables, func(key string, _ *memory.StatsProv) bool { return strings.HasPrefix(key, statisticsKey(db, "")) })
	return nil
}

// RowCount implements gms.StatsProvider.
func (s *statistics) RowCount(ctx *gms.Context, db string, table gms.Table) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[statisticsKey(db, table.Name())]; t != nil {
		return t.RowCount(ctx, db, table)
	}
	return 0, nil
}

// DataLength implements gms.StatsProvider.
func (s *statistics) DataLength(ctx *gms.Context, db string, table gms.Table) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tables[statisticsKey(db, table.Name())]; t != nil {
		return t.DataLength(ctx, db, table)
	}
	return 0, nil
}

// isEmpty says whether the statement sees no rows in a table.
func isEmpty(ctx *gms.Context, table gms.Table) (bool, error) {
	parts, err := table.Partitions(ctx)
	if err != nil {
		return false, err
	}
	rows := gms.NewTableRowIter(ctx, table, parts)
	_, err = rows.Next(ctx)
	isEmpty := errors.Is(err, io.EOF)
	if isEmpty {
		err = nil
	}
	return isEmpty, errors.Join(err, rows.Close(ctx))
}

// indexesBytes reports whether an index of a table has a column whose values Go's operators
// cannot compare.
func indexesBytes(table gms.Table) bool {
	t, ok := gms.GetUnderlyingTable(table).(*store.Table)
	if !ok {
		return false
	}
	for i, c := range t.Info.Columns {
		switch k := c.Type.Kind; {
		case k == catalog.KindBinary, k == catalog.KindVarbinary, k == catalog.KindBlob, k >= catalog.KindJSON && k <= catalog.KindVector:
			if t.Indexed(i) {
				return true
			}
		}
	}
	return false
}
