package tpcc

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
)

// A partition is one machine's view of a partition. It has the machine's handles of the indexes for
// the warehouses stored at one machine, and for that machine's copy of the items. The indexes
// contain pointers to rows, except the history, which contains its rows.
type partition struct {
	// hint is an address near which the partition's rows are allocated.
	hint region.Addr

	warehouses, warehouseYTD                    *hash.Table
	districts, districtOrders, districtYTD      *hash.Table
	customers, customerData, histories, orders  *hash.Table
	stocks, stockData, items                    *hash.Table
	newOrders, customerOrders, lines, lastNames *btree.Tree
}

// A hashIndex describes one of a partition's hash tables, and how to create it.
type hashIndex struct {
	name  string
	cfg   hash.Config
	field func(*partition) **hash.Table
}

type treeIndex struct {
	name  string
	field func(*partition) **btree.Tree
}

// toRows is the configuration of the indexes that map keys to pointers.
var toRows = hash.Config{KeyBytes: keyBytes, ValueBytes: region.PtrBytes}

var hashIndexes = []hashIndex{
	{"warehouse", toRows, func(p *partition) **hash.Table { return &p.warehouses }},
	{"warehouse_year", toRows, func(p *partition) **hash.Table { return &p.warehouseYTD }},
	{"district", toRows, func(p *partition) **hash.Table { return &p.districts }},
	{"district_order", toRows, func(p *partition) **hash.Table { return &p.districtOrders }},
	{"district_year", toRows, func(p *partition) **hash.Table { return &p.districtYTD }},
	{"customer", toRows, func(p *partition) **hash.Table { return &p.customers }},
	{"customer_data", toRows, func(p *partition) **hash.Table { return &p.customerData }},
	{"history", hash.Config{KeyBytes: historyKeyBytes, ValueBytes: historyBytes}, func(p *partition) **hash.Table { return &p.histories }},
	{"orders", toRows, func(p *partition) **hash.Table { return &p.orders }},
	{"stock", toRows, func(p *partition) **hash.Table { return &p.stocks }},
	{"stock_data", toRows, func(p *partition) **hash.Table { return &p.stockData }},
	{"item", toRows, func(p *partition) **hash.Table { return &p.items }},
}

var treeIndexes = []treeIndex{
	{"new_order", func(p *partition) **btree.Tree { return &p.newOrders }},
	{"orders_customer", func(p *partition) **btree.Tree { return &p.customerOrders }},
	{"order_line", func(p *partition) **btree.Tree { return &p.lines }},
	{"customer_last", func(p *partition) **btree.Tree { return &p.lastNames }},
}

// A partitioning has all partitions, indexed by the machine that uses them, then by the machine
// that stores them. It has no entries for machines of other processes.
type partitioning [][]partition

// partitionOf returns the machine that stores the partition of a warehouse.
func partitionOf(warehouse, machines int) int { return (warehouse - 1) % machines }

// openPartitions creates the indexes, or finds them.
func openPartitions(ctx context.Context, t *bench.Target) (partitioning, error) {
	hints, err := t.Places(ctx)
	if err != nil {
		return nil, err
	}
	n := t.Machines()
	all := make(partitioning, n)
	for _, user := range t.Here() {
		all[user] = make([]partition, n)
	}
	for at := range n {
		for _, user := range t.Here() {
			all[user][at].hint = hints[at]
		}
		if err := all.open(ctx, t, at); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// open opens the indexes of the partition at one machine, for all users.
func (all partitioning) open(ctx context.Context, t *bench.Target, at int) error {
	name := func(index string) string { return fmt.Sprintf("tpcc.%s.%d", index, at) }
	for _, index := range hashIndexes {
		handles, err := t.HashAt(ctx, at, name(index.name), index.cfg)
		if err != nil {
			return err
		}
		for _, user := range t.Here() {
			*index.field(&all[user][at]) = handles[user]
		}
	}
	for _, index := range treeIndexes {
		handles, err := t.TreeAt(ctx, at, name(index.name), btree.Config{})
		if err != nil {
			return err
		}
		for _, user := range t.Here() {
			*index.field(&all[user][at]) = handles[user]
		}
	}
	return nil
}
