package tpcc

import (
	"fmt"

	"github.com/farmsql/farmsql/bench"
)

// Cardinalities of the specification (clause 1.2.1).
const (
	districts = 10 // number of districts of a warehouse
	customers = 3000
	items     = 100_000
	lastNames = 1000
)

// Bounds of Config.
const (
	warehousesMax = 1<<24 - 1
	customersMin  = 10
	itemsMin      = 20 // more than the number of lines of any order
)

// A Config describes the database.
type Config struct {
	// Warehouses is the scale. 1 by default.
	Warehouses int
	// Customers is the number of a district's customers. Items is the number of items.
	// The defaults are the specification's, 3000 and 100,000; fewer are for tests,
	// and then the printed scale says so.
	Customers, Items int
	// Seed determines the contents.
	Seed uint64
	// Drop makes Load drop an existing database of the benchmark, over SQL.
	Drop bool
}

// validate sets the defaults, and returns an error for sizes out of bounds.
func (c *Config) validate() error {
	for _, f := range []struct {
		v       *int
		initial int
	}{{&c.Warehouses, 1}, {&c.Customers, customers}, {&c.Items, items}} {
		if *f.v == 0 {
			*f.v = f.initial
		}
	}
	if c.Warehouses < 1 || c.Warehouses > warehousesMax || c.Customers < customersMin || c.Customers > customers || c.Items < itemsMin || c.Items > items {
		return fmt.Errorf("tpcc: %d warehouses (1 to %d), %d customers a district (%d to %d), %d items (%d to %d)",
			c.Warehouses, warehousesMax, c.Customers, customersMin, customers, c.Items, itemsMin, items)
	}
	return nil
}

func (c *Config) scale() bench.Scale {
	s := bench.Scale{N: c.Warehouses, Unit: "warehouses"}
	if c.Warehouses == 1 {
		s.Unit = "warehouse"
	}
	if c.Customers != customers || c.Items != items {
		s.Unit += fmt.Sprintf(" (reduced: %d customers a district, %d items)", c.Customers, c.Items)
	}
	return s
}

// delivered returns the number of a district's orders that are delivered initially: 2100 of 3000.
// Initially there is one order for each customer.
func (c *Config) delivered() int { return c.Customers * 7 / 10 }

// names returns the number of different last names.
func (c *Config) names() int { return min(lastNames, c.Customers) }
