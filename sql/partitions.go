package sql

import (
	"reflect"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
)

// refusedPartitions refuses statements that change partitions, and statements that read or write
// only some partitions: go-mysql-server ignores the former, and executes the latter on the whole
// table. No table has partitions here, whatever CREATE TABLE says.
func refusedPartitions(query string, stmt sqlparser.Statement) (err error) {
	if stmt == nil || !compat.ContainsFold(query, "partition") {
		return nil
	}
	compat.EachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.PartitionSpec](), func(reflect.Value) {
		err = myerr.NotPartitioned.New()
	})
	only := func(some sqlparser.Partitions) {
		if len(some) > 0 {
			err = myerr.PartitionClause.New()
		}
	}
	compat.EachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.AliasedTableExpr](), func(v reflect.Value) {
		only(v.Interface().(*sqlparser.AliasedTableExpr).Partitions)
	})
	compat.EachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.Insert](), func(v reflect.Value) { only(v.Interface().(*sqlparser.Insert).Partitions) })
	compat.EachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.Delete](), func(v reflect.Value) { only(v.Interface().(*sqlparser.Delete).Partitions) })
	return err
}
