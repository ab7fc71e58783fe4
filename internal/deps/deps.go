package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/dolthub/go-mysql-server"
	_ "github.com/dolthub/go-mysql-server/server"
	_ "github.com/dolthub/go-mysql-server/enginetest"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/google/btree"
	_ "github.com/jedib0t/go-pretty/v6/table"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
)
