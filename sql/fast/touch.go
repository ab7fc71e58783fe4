package fast

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// touches are the columns with ON UPDATE CURRENT_TIMESTAMP that a statement does not assign: they get the time of the
// statement in each row that it changes.
type touches []touch

type touch struct {
	column int
	codec  *row.KeyCodec
}

// touchesOf returns the touches of a statement; false if a column gets another value than the time in whole seconds.
func touchesOf(info *store.TableInfo, isAssigned func(column int) bool) (all touches, ok bool) {
	for i := range info.Columns {
		c := &info.Columns[i]
		if c.OnUpdate == "" || isAssigned(i) {
			continue
		}
		k := info.Codec(i)
		if !strings.EqualFold(c.OnUpdate, "CURRENT_TIMESTAMP") || !takesNow(k) || info.InReference(i) {
			return nil, false
		}
		all = append(all, touch{i, k})
	}
	return all, true
}

// set sets the columns in a row; false if there is no time, and go-mysql-server has to report the error.
func (t touches) set(ctx *gms.Context, r gms.Row) bool {
	var now statementTime
	for i := range t {
		var ok bool
		if r[t[i].column], ok = now.stored(ctx, t[i].codec); !ok {
			return false
		}
	}
	return true
}
