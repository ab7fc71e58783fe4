package farmsql_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// store makes an object of a text.
func store(tx *txn.Tx, text string) (region.Ptr, error) {
	p, object, err := tx.Alloc(1+len(text), 0)
	if err == nil {
		object[0] = byte(len(text))
		copy(object[1:], text)
	}
	return p, err
}

// load returns the text of an object.
func load(tx *txn.Tx, p region.Ptr) (string, error) {
	object, err := tx.Read(p)
	if err != nil {
		return "", err
	}
	return string(object[1 : 1+object[0]]), nil
}

// An index of one's own: people are found by their number, and by their town. Both indexes
// change with the object in one transaction.
func ExampleDB_Tree() {
	folder, remove := temporary()
	defer remove()
	db, err := farmsql.Open(farmsql.Config{Folder: folder, RegionSize: 64 * farmsql.MiB})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	byNumber, err := db.Tree(ctx, "people", btree.Config{})
	if err != nil {
		log.Fatal(err)
	}
	byTown, err := db.Tree(ctx, "people by town", btree.Config{})
	if err != nil {
		log.Fatal(err)
	}

	for _, person := range []struct{ number, name, town string }{
		{"1", "Ada", "London"}, {"2", "Alan", "London"}, {"3", "Emmy", "Erlangen"},
	} {
		err := db.Run(ctx, func(tx *txn.Tx) error {
			p, err := store(tx, person.name)
			if err == nil {
				err = byNumber.Insert(tx, []byte(person.number), p)
			}
			if err == nil { // the number makes the key unique
				err = byTown.Insert(tx, []byte(person.town+"/"+person.number), p)
			}
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	var names []string
	err = db.Run(ctx, func(tx *txn.Tx) error {
		names = nil // it may be the second attempt
		cursor := byTown.ScanPrefix(tx, []byte("London/"), false)
		for _, p := range cursor.All() {
			name, err := load(tx, p)
			if err != nil {
				return err
			}
			names = append(names, name)
		}
		return cursor.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names)
	// Output: [Ada Alan]
}

// Scans: a range of keys in either order, with what they lead to. ReadAhead reads the objects
// together, which matters where they are at other machines.
func ExampleDB_Tree_scan() {
	folder, remove := temporary()
	defer remove()
	db, err := farmsql.Open(farmsql.Config{Folder: folder, RegionSize: 64 * farmsql.MiB})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	days, err := db.Tree(ctx, "days", btree.Config{})
	if err != nil {
		log.Fatal(err)
	}
	err = db.Run(ctx, func(tx *txn.Tx) error {
		for month := 1; month <= 12; month++ {
			p, err := store(tx, fmt.Sprint("invoice ", month))
			if err != nil {
				return err
			}
			if err := days.Put(tx, fmt.Appendf(nil, "2026-%02d-01", month), p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	var found []string
	err = db.Run(ctx, func(tx *txn.Tx) error {
		found = nil
		cursor := days.Scan(tx, []byte("2026-03"), []byte("2026-06"), true).ReadAhead(10)
		for day, p := range cursor.All() {
			text, err := load(tx, p)
			if err != nil {
				return err
			}
			found = append(found, string(day)+": "+text)
		}
		return cursor.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range found {
		fmt.Println(line)
	}
	// Output:
	// 2026-05-01: invoice 5
	// 2026-04-01: invoice 4
	// 2026-03-01: invoice 3
}

// A queue keeps texts in the order in which they came.
type queue struct{ tree *btree.Tree }

// push appends a text.
func (q *queue) push(tx *txn.Tx, text string) error {
	next := uint64(0)
	last := q.tree.Scan(tx, nil, nil, true)
	for key := range last.All() {
		next = binary.BigEndian.Uint64(key) + 1
		break
	}
	if last.Err() != nil {
		return last.Err()
	}
	p, err := store(tx, text)
	if err != nil {
		return err
	}
	return q.tree.Insert(tx, binary.BigEndian.AppendUint64(nil, next), p)
}

// pop takes the oldest text, and frees its object. It returns false if there is none.
func (q *queue) pop(tx *txn.Tx) (text string, ok bool, err error) {
	first := q.tree.Scan(tx, nil, nil, false)
	for key, p := range first.All() {
		if text, err = load(tx, p); err == nil {
			_, err = q.tree.Delete(tx, key)
		}
		if err == nil {
			err = tx.Free(p)
		}
		return text, true, err
	}
	return "", false, first.Err()
}

// A queue: of two transactions that push or pop at the same time one is run again, so that
// each text is taken once.
func ExampleDB_Run() {
	folder, remove := temporary()
	defer remove()
	db, err := farmsql.Open(farmsql.Config{Folder: folder, RegionSize: 64 * farmsql.MiB})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	tree, err := db.Tree(ctx, "jobs", btree.Config{})
	if err != nil {
		log.Fatal(err)
	}
	jobs := &queue{tree}
	for _, job := range []string{"wash", "dry", "iron"} {
		if err := db.Run(ctx, func(tx *txn.Tx) error { return jobs.push(tx, job) }); err != nil {
			log.Fatal(err)
		}
	}
	for more := true; more; {
		var job string
		err := db.Run(ctx, func(tx *txn.Tx) (err error) {
			job, more, err = jobs.pop(tx)
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job, more)
	}
	// Output:
	// wash true
	// dry true
	// iron true
	//  false
}
