package sql

import (
	"reflect"

	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
)

// refusedPartitions refuses statements that change partitions, and statements that read or write
// only some: go-mysql-server ignores what changes partitions, and reads or writes the whole table
// in place of some. No table has partitions here, whatever CREATE TABLE says.
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
	compat.EachOf(reflect.ValueOf(stmt), insertType, func(v reflect.Value) { only(v.Interface().(*sqlparser.Insert).Partitions) })
	compat.EachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.Delete](), func(v reflect.Value) { only(v.Interface().(*sqlparser.Delete).Partitions) })
	return err
}
