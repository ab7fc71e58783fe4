// Command gorm tests gorm: migrations, transactions, savepoints, errors, types, relations,
// upserts and reconnecting. It is a module of its own, so that farmsql does not depend on
// gorm.
//
// usage: gorm HOST PORT DATABASE
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"reflect"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// An Author has a column of each type.
type Author struct {
	ID        uint
	Name      string `gorm:"size:50;not null;uniqueIndex"`
	CreatedAt time.Time
	Values    Values `gorm:"embedded"`
	Books     []Book `gorm:"constraint:OnDelete:CASCADE"`
}

// Values has values at the limits of their types. They must come back unchanged.
type Values struct {
	Alive   bool
	Low     int32
	High    int32
	Big     int64
	Large   uint64
	Price   string    `gorm:"type:decimal(20,4);default:0"`
	At      time.Time `gorm:"type:datetime(6);default:'2000-01-01'"`
	Data    *Data     `gorm:"type:json;serializer:json"`
	Bytes   []byte
	Words   string
	Nothing *int
}

// Data is kept as JSON.
type Data struct {
	A []any  `json:"a"`
	B string `json:"ключ"`
}

// A Book has one author, and tags that it shares with other books.
type Book struct {
	ID       uint64
	AuthorID uint `gorm:"not null"`
	Title    string
	Kind     string `gorm:"type:enum('novel','poem');default:novel;index"`
	Tags     []Tag  `gorm:"many2many:book_tags"`
	Deleted  gorm.DeletedAt
}

// A Tag is a word for books.
type Tag struct {
	Name string `gorm:"primaryKey;size:20"`
}

var errThrown = errors.New("thrown in a transaction")

func main() {
	dsn := fmt.Sprintf("root@tcp(%s)/%s?charset=utf8mb4&parseTime=true&loc=UTC", net.JoinHostPort(os.Args[1], os.Args[2]), os.Args[3])
	must(driver.SetLogger(&driver.NopLogger{})) // gorm would print the lost connection
	db, other := open(dsn), open(dsn)
	migrate(db)
	transactions(db, other)
	failures(db)
	types(db)
	relations(db)
	upserts(db)
	reconnect(db, other)
	must(db.Migrator().DropTable("book_tags", &Book{}, &Tag{}, &Author{}))
	tables, err := db.Migrator().GetTables()
	must(err)
	check("dropped", len(tables), 0)
	fmt.Println("ok")
}

func open(dsn string) *gorm.DB {
	db, err := gorm.Open(mysql.Open(dsn), &gorm.Config{Logger: logger.Discard})
	must(err)
	return db
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(what string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("%s: %+v, want %+v", what, got, want))
	}
}

func fails(number uint16, err error) {
	var e *driver.MySQLError
	if !errors.As(err, &e) || e.Number != number {
		panic(fmt.Sprintf("%v, want error %d", err, number))
	}
}

func rolledBack(err error) {
	if !errors.Is(err, errThrown) {
		panic(fmt.Sprintf("%v, want what was thrown", err))
	}
}

func count(db *gorm.DB, model any) (n int64) {
	must(db.Model(model).Count(&n).Error)
	return n
}

func names(db *gorm.DB) (names []string) {
	must(db.Model(&Author{}).Order("name").Pluck("name", &names).Error)
	return names
}

func migrate(db *gorm.DB) {
	for range 2 { // the second time nothing is left to migrate
		must(db.AutoMigrate(&Author{}, &Tag{}, &Book{}))
	}
	m := db.Migrator()
	check("an index", m.HasIndex(&Book{}, "Kind"), true)
	check("a foreign key", m.HasConstraint(&Author{}, "Books"), true)
	columns, err := m.ColumnTypes(&Author{})
	must(err)
	check("columns", len(columns), 14)
	must(m.RenameColumn(&Book{}, "title", "name"))
	check("renamed", [2]bool{m.HasColumn(&Book{}, "title"), m.HasColumn(&Book{}, "name")}, [2]bool{false, true})
	must(m.RenameColumn(&Book{}, "name", "title"))
}

func transactions(db, other *gorm.DB) {
	rolledBack(db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(&Author{Name: "Ann"}).Error)
		check("not committed", count(other, &Author{}), int64(0))
		return errThrown
	}))
	check("rolled back", count(db, &Author{}), int64(0))
	for _, level := range []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx := db.Begin(&sql.TxOptions{Isolation: level})
		must(tx.Create(&Author{Name: "Ann"}).Error)
		must(tx.Rollback().Error)
	}
	must(db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(&Author{Name: "Ann"}).Error)
		rolledBack(tx.Transaction(func(inner *gorm.DB) error {
			must(inner.Create(&Author{Name: "Bob"}).Error)
			return errThrown
		}))
		fails(1062, tx.Transaction(func(inner *gorm.DB) error { return inner.Create(&Author{Name: "Ann"}).Error }))
		must(tx.Transaction(func(inner *gorm.DB) error { return inner.Create(&Author{Name: "Cid"}).Error }))
		must(tx.SavePoint("a").Error)
		must(tx.Where("true").Delete(&Author{}).Error)
		return tx.RollbackTo("a").Error
	}))
	check("the outer transaction stays", names(other), []string{"Ann", "Cid"})
}

func failures(db *gorm.DB) {
	fails(1062, db.Create(&Author{Name: "Ann"}).Error)
	fails(1048, db.Model(&Author{}).Where("name = ?", "Ann").Update("name", nil).Error)
	fails(1146, db.Table("missing").Find(&[]map[string]any{}).Error)
	fails(1054, db.Where("missing = 1").Find(&[]Author{}).Error)
	fails(1064, db.Exec("selec 1").Error)
	fails(1452, db.Create(&Book{AuthorID: 99}).Error)
	fails(1264, db.Model(&Author{}).Where("name = ?", "Ann").Update("low", int64(math.MinInt32)-1).Error)
}

func types(db *gorm.DB) {
	all := make([]byte, 256)
	for k := range all {
		all[k] = byte(k)
	}
	want := Values{
		Alive: true, Low: math.MinInt32, High: math.MaxInt32, Big: math.MinInt64, Large: math.MaxUint64, Price: "-9999999999999999.1250",
		At:   time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC),
		Data: &Data{[]any{1.0, -2.5, nil, true}, "zä\U0001f600'\"\\"}, Bytes: all, Words: "zä\U0001f600'\"\\\n\x00%_",
	}
	var ann, got Author
	must(db.First(&ann, "name = ?", "Ann").Error)
	ann.Values = want
	must(db.Save(&ann).Error)
	must(db.First(&got, ann.ID).Error)
	check("types", got.Values, want)
	data, err := json.Marshal(want.Data)
	must(err)
	for _, prepare := range []bool{false, true} {
		s := db.Session(&gorm.Session{PrepareStmt: prepare})
		query := s.Where("low = ? and big = ? and large = ? and price = ? and at = ? and bytes = ? and words = ? and nothing is null and alive = ? and data = cast(? as json)",
			want.Low, want.Big, want.Large, want.Price, want.At, want.Bytes, want.Words, true, string(data))
		check("found by the values", names(query), []string{"Ann"})
	}
}

func relations(db *gorm.DB) {
	var ann Author
	must(db.First(&ann, "name = ?", "Ann").Error)
	ann.Books = []Book{{Title: "a", Tags: []Tag{{"x"}, {"y"}}}, {Title: "b", Kind: "poem", Tags: []Tag{{"x"}}}}
	must(db.Save(&ann).Error)
	var loaded []Author
	must(db.Preload("Books.Tags").Preload("Books").Order("name").Find(&loaded).Error)
	check("loaded", [2]int{len(loaded[0].Books), len(loaded[1].Books)}, [2]int{2, 0})
	check("with their tags", loaded[0].Books[0].Tags, []Tag{{"x"}, {"y"}})
	check("a default", loaded[0].Books[0].Kind, "novel")
	var counts []struct {
		Name string
		N    int
	}
	must(db.Model(&Author{}).Select("authors.name, count(books.id) n").Joins("left join books on books.author_id = authors.id").
		Group("authors.name").Having("n > ?", 0).Scan(&counts).Error)
	check("joined", fmt.Sprint(counts), "[{Ann 2}]")
	must(db.Delete(&ann.Books[1]).Error) // gorm only marks it as deleted
	check("marked", [2]int64{count(db, &Book{}), count(db.Unscoped(), &Book{})}, [2]int64{1, 2})
	must(db.Model(&ann.Books[0]).Association("Tags").Delete(&Tag{"x"}))
	check("tags", db.Model(&ann.Books[0]).Association("Tags").Count(), int64(1))
	must(db.Transaction(func(tx *gorm.DB) error {
		return tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&Author{}, ann.ID).Error
	}))
	must(db.Exec("delete from book_tags").Error)
	must(db.Delete(&ann).Error)
	check("deleted with its books", count(db.Unscoped(), &Book{}), int64(0))
}

func upserts(db *gorm.DB) {
	low := clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"low"})}
	must(db.Clauses(low).Create([]Author{{Name: "Cid", Values: Values{Low: 1}}, {Name: "Eve", Values: Values{Low: 2}}}).Error)
	must(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Author{Name: "Cid", Values: Values{Low: 3}}).Error)
	var lows []int
	must(db.Model(&Author{}).Order("name").Pluck("low", &lows).Error)
	check("upserted", lows, []int{1, 2})
	var cid Author
	must(db.Where(Author{Name: "Cid"}).FirstOrCreate(&cid).Error)
	check("found", cid.Values.Low, int32(1))
	must(db.Model(&cid).Update("low", gorm.Expr("low + ?", 5)).Error)
	must(db.First(&cid).Error)
	check("changed", cid.Values.Low, int32(6))
}

func reconnect(db, other *gorm.DB) {
	pool, err := db.DB()
	must(err)
	pool.SetMaxOpenConns(1)
	var before, left, after int
	must(db.Raw("select connection_id()").Scan(&before).Error)
	must(other.Exec(fmt.Sprintf("kill %d", before)).Error)
	for left = 1; left > 0; {
		must(other.Raw("select count(*) from information_schema.processlist where id = ?", before).Scan(&left).Error)
	}
	time.Sleep(50 * time.Millisecond) // until the end of the connection has arrived here
	must(db.Raw("select connection_id()").Scan(&after).Error)
	check("another connection", after != before, true)
}
