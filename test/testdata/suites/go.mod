module github.com/farmsql/farmsql/test/testdata/suites

go 1.26.2

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/jinzhu/gorm v1.9.16
	github.com/jmoiron/sqlx v1.4.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
)
