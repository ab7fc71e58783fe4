package tpch

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Rows of tables at scale 1. supplier has suppliersMin at least.
const (
	suppliers = 10_000
	parts     = 200_000
	customers = 150_000
	orders    = 1_500_000

	// suppliersMin is the number of suppliers from which on the four suppliers of a part differ.
	suppliersMin = 10
)

// A record is a row of a table, in the form of VALUES.
type record struct{ table, values string }

// A generator makes the rows of all tables.
type generator struct {
	*rand.Rand
	suppliers, parts, customers, orders int
}

// newGenerator returns the generator of a scale. Equal seeds make equal rows.
func newGenerator(scale float64, seed uint64) *generator {
	of := func(n, least int) int { return max(least, int(float64(n)*scale+0.5)) }
	return &generator{
		Rand: rand.New(rand.NewPCG(seed, 22)), suppliers: of(suppliers, suppliersMin), parts: of(parts, 4), customers: of(customers, 3), orders: of(orders, 1),
	}
}

// count returns about how many rows there are: an order has four lines on average.
func (g *generator) count() int {
	return len(regions) + len(nations) + g.suppliers + 5*g.parts + g.customers + 5*g.orders
}

// all returns the rows of all tables. Those of orders and lineitem come in turns.
func (g *generator) all() iter.Seq[record] {
	return func(yield func(record) bool) {
		isGoing := true
		add := func(table string, columns ...any) {
			isGoing = isGoing && yield(record{table, row(columns)})
		}
		g.places(add)
		for i := 1; i <= g.suppliers && isGoing; i++ {
			g.supplier(add, i)
		}
		for i := 1; i <= g.parts && isGoing; i++ {
			g.part(add, i)
		}
		for i := 1; i <= g.customers && isGoing; i++ {
			g.customer(add, i)
		}
		for i := 0; i < g.orders && isGoing; i++ {
			g.order(add, i)
		}
	}
}

// row returns a row in the form of VALUES. No text has a quote in it.
func row(columns []any) string {
	var b strings.Builder
	for i, c := range columns {
		b.WriteString(map[bool]string{true: "(", false: ", "}[i == 0])
		switch c := c.(type) {
		case string:
			fmt.Fprintf(&b, "'%s'", c)
		case time.Time:
			fmt.Fprintf(&b, "'%s'", c.Format(time.DateOnly))
		default:
			fmt.Fprint(&b, c)
		}
	}
	b.WriteString(")")
	return b.String()
}

// A money is an amount in cents.
type money int

// String implements fmt.Stringer.
func (m money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	return fmt.Sprintf("%s%d.%02d", sign, m/100, m%100)
}

// between draws a number from low to high.
func (g *generator) between(low, high int) int { return low + g.IntN(high-low+1) }

// one draws an element.
func (g *generator) one(all []string) string { return all[g.IntN(len(all))] }

// text draws words of together low to high letters.
func (g *generator) text(low, high int) string {
	n := g.between(low, high)
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(g.one(words) + " ")
	}
	return strings.TrimSpace(b.String()[:n])
}

// phone draws the telephone number of a nation, whose number is in its first two digits.
func (g *generator) phone(nation int) string {
	return fmt.Sprintf("%d-%d-%d-%d", 10+nation, g.between(100, 999), g.between(100, 999), g.between(1000, 9999))
}

func (g *generator) balance() money { return money(g.between(-99999, 999999)) }

// places makes the rows of region and nation.
func (g *generator) places(add func(string, ...any)) {
	for i, name := range regions {
		add("region", i, name, g.text(31, 80))
	}
	for i, n := range nations {
		add("nation", i, n.name, n.region, g.text(31, 80))
	}
}

// complaints is how many suppliers there are for one of whom customers have complaints.
const complaints = 2000

func (g *generator) supplier(add func(string, ...any), i int) {
	nation, comment := g.IntN(len(nations)), g.text(25, 80)
	if i%complaints == 7 {
		comment = "sly Customer " + g.text(10, 60) + " Complaints"
	}
	add("supplier", i, fmt.Sprintf("Supplier#%09d", i), g.text(10, 40), nation, g.phone(nation), g.balance(), comment)
}

// price returns the price of a part.
func price(part int) int { return 90000 + part/10%20001 + 100*(part%1000) }

// supplierOf returns the supplier of a part, of which it has four: j is 0 to 3. The remainder by a twelfth, which changes
// nothing from scale 0.025 on, keeps the four apart if there are few suppliers.
func (g *generator) supplierOf(part, j int) int {
	return (part+j*(g.suppliers/4+(part-1)/g.suppliers%max(1, g.suppliers/12)))%g.suppliers + 1
}

// part makes a part and its rows of partsupp.
func (g *generator) part(add func(string, ...any), i int) {
	var name []string
	for len(name) < 5 {
		if c := g.one(colors); !slices.Contains(name, c) {
			name = append(name, c)
		}
	}
	maker := g.between(1, 5)
	add("part", i, strings.Join(name, " "), fmt.Sprintf("Manufacturer#%d", maker), fmt.Sprintf("Brand#%d%d", maker, g.between(1, 5)),
		g.one(types[0])+" "+g.one(types[1])+" "+g.one(types[2]), g.between(1, 50), g.one(containers[0])+" "+g.one(containers[1]), money(price(i)), g.text(5, 22))
	for j := range 4 {
		add("partsupp", i, g.supplierOf(i, j), g.between(1, 9999), money(g.between(100, 100000)), g.text(20, 60))
	}
}

func (g *generator) customer(add func(string, ...any), i int) {
	nation := g.IntN(len(nations))
	add("customer", i, fmt.Sprintf("Customer#%09d", i), g.text(10, 40), nation, g.phone(nation), g.balance(), g.one(segments), g.text(29, 60))
}

var (
	firstDay = time.Date(1992, 1, 1, 0, 0, 0, 0, time.UTC)
	// today is the standard's CURRENTDATE: what is shipped and returned before it has been.
	today = time.Date(1995, 6, 17, 0, 0, 0, 0, time.UTC)
)

// orderDays is the number of days on which orders are made: the last lines are received on the last day of 1998.
const orderDays = 2405 - 151

// specials is of how many orders one has a comment about special requests.
const specials = 90

// order makes order i and its lines. Of 32 keys 8 are used, and of three customers one has no orders.
func (g *generator) order(add func(string, ...any), i int) {
	key, customer := i/8*32+i%8+1, g.between(1, g.customers)
	for customer%3 == 0 {
		customer = g.between(1, g.customers)
	}
	ordered := firstDay.AddDate(0, 0, g.IntN(orderDays+1))
	lines, total, shipped := g.between(1, 7), 0, 0
	for l := 1; l <= lines; l++ {
		cents, isShipped := g.line(add, key, l, ordered)
		if total += cents; isShipped {
			shipped++
		}
	}
	status := "P"
	switch shipped {
	case lines:
		status = "F"
	case 0:
		status = "O"
	}
	comment := g.text(19, 78)
	if i%specials == 5 {
		comment = "special packages requests " + g.text(10, 50)
	}
	add("orders", key, customer, status, money(total), ordered, g.one(priorities), fmt.Sprintf("Clerk#%09d", g.between(1, max(1, g.orders/1500))), 0, comment)
}

// line makes line number l of an order. It returns its price, in cents with discount and tax, and whether it has been shipped.
func (g *generator) line(add func(string, ...any), order, l int, ordered time.Time) (cents int, isShipped bool) {
	part, quantity, discount, tax := g.between(1, g.parts), g.between(1, 50), g.between(0, 10), g.between(0, 8)
	days := func(from time.Time, low, high int) time.Time { return from.AddDate(0, 0, g.between(low, high)) }
	ship, commit := days(ordered, 1, 121), days(ordered, 30, 90)
	receipt := days(ship, 1, 30)
	returned, status := "N", "F"
	if !receipt.After(today) {
		returned = g.one([]string{"R", "A"})
	}
	if ship.After(today) {
		status = "O"
	}
	extended := quantity * price(part)
	add("lineitem", order, part, g.supplierOf(part, g.IntN(4)), l, quantity, money(extended), money(discount), money(tax), returned, status, ship, commit, receipt,
		g.one(instructions), g.one(modes), g.text(10, 43))
	return extended * (100 - discount) * (100 + tax) / 10000, status == "F"
}
