package tpcc

import "fmt"

// A ledger has the data that the consistency conditions need, read from the tables through either
// API.
type ledger struct {
	cfg        *Config
	warehouses []warehouseBook // element i is warehouse i+1
	counts     []rowCount
	// items is the number of items. On the native API it is the number in an incomplete copy, if
	// there is one.
	items int
}

// A table is one of the tables whose number of rows is constant after loading.
type table int

const (
	warehouseTable table = iota
	districtTable
	customerTable
	stockTable
)

// rows returns the number of rows that the table must have.
func (t table) rows(c *Config) int {
	perWarehouse := [...]int{warehouseTable: 1, districtTable: districts, customerTable: districts * c.Customers, stockTable: c.Items}
	return c.Warehouses * perWarehouse[t]
}

// A rowCount is the number of rows found in a table, or the number of entries of an index whose
// entries lead to the rows or to parts of them.
type rowCount struct {
	table
	name string
	n    int
}

// A warehouseBook has the data of a warehouse that the consistency conditions use.
type warehouseBook struct {
	exists    bool
	stocks    []bool // whether the stock of item i+1 exists
	ytd       money  // W_YTD
	paid      money  // sum of the payments in the history
	districts [districts]districtBook
}

// A districtBook has the data of a district that the consistency conditions use.
type districtBook struct {
	exists    bool
	ytd       money // D_YTD
	next      int   // D_NEXT_O_ID
	paid      money // sum of the payments in the history
	customers []customerBook
	orders    []orderBook // element i is order i+1
}

// A customerBook has the data of a customer that the consistency conditions use.
type customerBook struct {
	exists       bool
	balance, ytd money // C_BALANCE, C_YTD_PAYMENT
	deliveries   int
	paid         money // sum of the payments in the history
}

// An orderBook has the data of an order that the consistency conditions use.
type orderBook struct {
	exists, isNew           bool // exists is set for a row in ORDER, isNew for one in NEW-ORDER
	customer, carrier, says int  // O_C_ID, O_CARRIER_ID, O_OL_CNT
	// lines is the number of the order's lines in ORDER-LINE. delivered is the number of delivered
	// lines, and amount the sum of their amounts.
	lines, delivered int
	amount           money
}

func newLedger(cfg *Config) *ledger {
	l := &ledger{cfg: cfg, warehouses: make([]warehouseBook, cfg.Warehouses)}
	for w := range l.warehouses {
		l.warehouses[w].stocks = make([]bool, cfg.Items)
		for d := range l.warehouses[w].districts {
			l.warehouses[w].districts[d].customers = make([]customerBook, cfg.Customers)
		}
	}
	return l
}

// warehouse returns the book of a warehouse.
func (l *ledger) warehouse(n int) (*warehouseBook, error) {
	if n < 1 || n > len(l.warehouses) {
		return nil, fmt.Errorf("a row of warehouse %d, of %d", n, len(l.warehouses))
	}
	return &l.warehouses[n-1], nil
}

func (l *ledger) district(warehouse, n int) (*districtBook, error) {
	w, err := l.warehouse(warehouse)
	if err == nil && (n < 1 || n > districts) {
		err = fmt.Errorf("a row of district %d of warehouse %d", n, warehouse)
	}
	if err != nil {
		return nil, err
	}
	return &w.districts[n-1], nil
}

func (l *ledger) customer(warehouse, district, n int) (*customerBook, error) {
	d, err := l.district(warehouse, district)
	if err == nil && (n < 1 || n > len(d.customers)) {
		err = fmt.Errorf("a row of customer %d of warehouse %d, district %d", n, warehouse, district)
	}
	if err != nil {
		return nil, err
	}
	return &d.customers[n-1], nil
}

// ordersMax is more orders than fit into memory.
const ordersMax = 1 << 28

// order returns the book of an order. It first adds the missing books of orders up to this one.
func (l *ledger) order(warehouse, district, n int) (*orderBook, error) {
	d, err := l.district(warehouse, district)
	if err == nil && (n < 1 || n > ordersMax) {
		err = fmt.Errorf("a row of order %d of warehouse %d, district %d", n, warehouse, district)
	}
	if err != nil {
		return nil, err
	}
	for len(d.orders) < n {
		d.orders = append(d.orders, orderBook{})
	}
	return &d.orders[n-1], nil
}

// count adds n to the number of rows of the table, or of its index, with that name.
func (l *ledger) count(t table, name string, n int) {
	for i := range l.counts {
		if c := &l.counts[i]; c.name == name {
			c.n += n
			return
		}
	}
	l.counts = append(l.counts, rowCount{t, name, n})
}

// refuse returns an error if a row of a table cannot exist.
func (l *ledger) refuse(t table, warehouse, district, n int) (err error) {
	switch t {
	case warehouseTable:
		_, err = l.warehouse(warehouse)
	case districtTable:
		_, err = l.district(warehouse, district)
	case customerTable:
		_, err = l.customer(warehouse, district, n)
	case stockTable:
		_, err = l.stock(warehouse, n)
	}
	return err
}

// stock returns the place that records the existence of a stock.
func (l *ledger) stock(warehouse, item int) (*bool, error) {
	w, err := l.warehouse(warehouse)
	if err == nil && (item < 1 || item > len(w.stocks)) {
		err = fmt.Errorf("a row of stock %d of warehouse %d", item, warehouse)
	}
	if err != nil {
		return nil, err
	}
	return &w.stocks[item-1], nil
}

func (l *ledger) enterStock(warehouse, item int) error {
	exists, err := l.stock(warehouse, item)
	if err == nil {
		*exists = true
	}
	return err
}

func (l *ledger) enterWarehouse(n int, ytd money) error {
	w, err := l.warehouse(n)
	if err == nil {
		w.exists, w.ytd = true, ytd
	}
	return err
}

func (l *ledger) enterDistrict(warehouse, n int, ytd money, next int) error {
	d, err := l.district(warehouse, n)
	if err == nil {
		d.exists, d.ytd, d.next = true, ytd, next
	}
	return err
}

func (l *ledger) enterCustomer(warehouse, district, n int, balance, ytd money, deliveries int) error {
	c, err := l.customer(warehouse, district, n)
	if err == nil {
		c.exists, c.balance, c.ytd, c.deliveries = true, balance, ytd, deliveries
	}
	return err
}

// enterPayment adds a payment from the history to the books of the customer who paid, and of the
// district and warehouse that received it.
func (l *ledger) enterPayment(h *historyRow) error {
	c, err := l.customer(h.warehouse, h.district, h.customer)
	if err != nil {
		return err
	}
	d, err := l.district(h.atWarehouse, h.atDistrict)
	if err != nil {
		return err
	}
	c.paid += h.amount
	d.paid += h.amount
	l.warehouses[h.atWarehouse-1].paid += h.amount
	return nil
}

func (l *ledger) enterOrder(warehouse, district, n, customer, carrier, lines int) error {
	o, err := l.order(warehouse, district, n)
	if err == nil {
		_, err = l.customer(warehouse, district, customer)
	}
	if err == nil {
		o.exists, o.customer, o.carrier, o.says = true, customer, carrier, lines
	}
	return err
}

// enterNewOrder enters a row of NEW-ORDER.
func (l *ledger) enterNewOrder(warehouse, district, n int) error {
	o, err := l.order(warehouse, district, n)
	if err == nil {
		o.isNew = true
	}
	return err
}

// enterLine enters a row of ORDER-LINE.
func (l *ledger) enterLine(warehouse, district, order int, amount money, isDelivered bool) error {
	o, err := l.order(warehouse, district, order)
	if err != nil {
		return err
	}
	o.lines++
	if isDelivered {
		o.delivered++
		o.amount += amount
	}
	return nil
}

// allOrders returns the number of orders of all districts.
func (l *ledger) allOrders() (n int) {
	for w := range l.warehouses {
		for d := range l.warehouses[w].districts {
			for i := range l.warehouses[w].districts[d].orders {
				if l.warehouses[w].districts[d].orders[i].exists {
					n++
				}
			}
		}
	}
	return n
}
