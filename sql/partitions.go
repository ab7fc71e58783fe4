package sql

import (
	"reflect"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// MySQL's numbers for partitions of a table that has none, as no table has here, whatever CREATE
// TABLE says.
const (
	erNotPartitioned     = 1505
	erClauseOfPartitions = 1747
)

// refusedPartitions refuses to change partitions, and to read or write some of them only:
// go-mysql-server does nothing of the first, and takes the whole table for the second.
func refusedPartitions(query string, stmt sqlparser.Statement) (err error) {
	if stmt == nil || !containsFold(query, "partition") {
		return nil
	}
	eachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.PartitionSpec](), func(reflect.Value) {
		err = mysql.NewSQLError(erNotPartitioned, "HY000", "Partition management on a not partitioned table is not possible")
	})
	only := func(some sqlparser.Partitions) {
		if len(some) > 0 {
			err = mysql.NewSQLError(erClauseOfPartitions, "HY000", "PARTITION () clause on non partitioned table")
		}
	}
	eachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.AliasedTableExpr](), func(v reflect.Value) {
		only(v.Interface().(*sqlparser.AliasedTableExpr).Partitions)
	})
	eachOf(reflect.ValueOf(stmt), insertType, func(v reflect.Value) { only(v.Interface().(*sqlparser.Insert).Partitions) })
	eachOf(reflect.ValueOf(stmt), reflect.TypeFor[*sqlparser.Delete](), func(v reflect.Value) { only(v.Interface().(*sqlparser.Delete).Partitions) })
	return err
}
