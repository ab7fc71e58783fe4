package farmsql_test

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"log"
	"net"
	"os"

	_ "github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/txn"
)

// temporary returns a data folder that goes away with the example.
func temporary() (folder string, remove func()) {
	folder, err := os.MkdirTemp("", "farmsql-example-")
	if err != nil {
		log.Fatal(err)
	}
	return folder, func() { _ = os.RemoveAll(folder) }
}

// A database in this process, used through database/sql.
func ExampleOpen() {
	folder, remove := temporary()
	defer remove()
	db, err := farmsql.Open(farmsql.Config{Folder: folder, RegionSize: 64 * farmsql.MiB})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	for _, statement := range []string{
		"create database shop",
		"create table shop.items (id int primary key auto_increment, name varchar(20), price decimal(6,2))",
		"insert into shop.items (name, price) values ('pen', 1.20), ('ink', 7.50)",
	} {
		if _, err := db.SQL().Exec(statement); err != nil {
			log.Fatal(err)
		}
	}
	var name string
	if err := db.SQL().QueryRow("select name from shop.items where price > ?", 5).Scan(&name); err != nil {
		log.Fatal(err)
	}
	fmt.Println(name)
	// Output: ink
}

// The driver alone: the data source name is the folder.
func ExampleDriver() {
	folder, remove := temporary()
	defer remove()
	db, err := stdsql.Open("farmsql", folder+"?regionsize=64MiB")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	var sum int
	if err := db.QueryRow("select 1 + 1").Scan(&sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
	// Output: 2
}

// MySQL clients connect to an embedded database over the network.
func ExampleDB_Serve() {
	folder, remove := temporary()
	defer remove()
	db, err := farmsql.Open(farmsql.Config{Folder: folder, RegionSize: 64 * farmsql.MiB})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- db.Serve(ctx, l) }()

	client, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/", l.Addr()))
	if err != nil {
		log.Fatal(err)
	}
	var answer string
	if err := client.QueryRow("select upper('hello')").Scan(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	_ = client.Close()
	stop()
	fmt.Println(<-served)
	// Output:
	// HELLO
	// <nil>
}

// Native transactions work on objects; a B-tree finds them again.
func ExampleDB_Machine() {
	folder, remove := temporary()
	defer remove()
	db, err := farmsql.Open(farmsql.Config{Folder: folder, RegionSize: 64 * farmsql.MiB})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	counters, err := db.Tree(ctx, "counters", btree.Config{})
	if err != nil {
		log.Fatal(err)
	}

	m := db.Machine(0)
	for range 3 {
		err := m.Run(ctx, func(tx *txn.Tx) error {
			p, found, err := counters.Get(tx, []byte("visits"))
			if err != nil {
				return err
			}
			if found {
				object, err := tx.Write(p)
				if err != nil {
					return err
				}
				object[0]++
				return nil
			}
			p, object, err := tx.Alloc(8, 0)
			if err != nil {
				return err
			}
			object[0] = 1
			return counters.Insert(tx, []byte("visits"), p)
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	p, _, err := counters.Lookup([]byte("visits")) // no transaction
	if err != nil {
		log.Fatal(err)
	}
	object := make([]byte, p.Capacity())
	if _, err := m.Read(p, object); err != nil {
		log.Fatal(err)
	}
	fmt.Println(object[0])
	// Output: 3
}
