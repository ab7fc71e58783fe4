// Package suites pins the modules whose own tests run against farmsql: test/suites_test.go.
package suites

import (
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jinzhu/gorm"
	_ "github.com/jmoiron/sqlx"
)
