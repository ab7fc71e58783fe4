package tpcc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/farmsql/farmsql/bench"
)

// A Workload is TPC-C on one target.
type Workload struct {
	cfg              Config
	target           *bench.Target
	loading, running constants
	store            store
	entered          int // see Committed
}

var _ bench.Workload = (*Workload)(nil)

// A store gives access to the database through one API.
type store interface {
	// create creates the empty tables or finds them; all processes call it at the
	// same time.
	create(ctx context.Context) error
	// itemLoaders returns a loader for each copy of the items that this process has
	// to load.
	itemLoaders(ctx context.Context) ([]loader, error)
	warehouseLoader(ctx context.Context, warehouse int) (loader, error)
	// client returns the database for a client's transactions, and the client's
	// warehouses.
	client(ctx context.Context, th *bench.Thread, warehouses int) (database, []int, error)
	// read reads all tables into the ledger.
	read(ctx context.Context, l *ledger) error
}

// A database runs transactions for one client. Each call runs a transaction until it has committed or
// failed. errUnusedItem means that a New-Order has rolled back.
type database interface {
	newOrder(context.Context, *newOrder) error
	payment(context.Context, *payment) error
	orderStatus(context.Context, *orderStatus) error
	delivery(context.Context, *delivery) error
	stockLevel(context.Context, *stockLevel) error
	close() error
}

// New returns the workload on a target, through the target's API.
func New(t *bench.Target, cfg Config) (*Workload, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &Workload{cfg: cfg, target: t, store: &nativeStore{target: t}}
	if t.API() == bench.SQL {
		w.store = &sqlStore{target: t, db: t.SQL(), drop: cfg.Drop}
	}
	w.loading, w.running = drawConstants(cfg.Seed)
	return w, nil
}

// Name implements bench.Workload.
func (w *Workload) Name() string { return "TPC-C" }

// Scale implements bench.Workload.
func (w *Workload) Scale() bench.Scale { return w.cfg.scale() }

// Kinds implements bench.Workload.
func (w *Workload) Kinds() []string { return kindNames }

// Load implements bench.Workload.
func (w *Workload) Load(ctx context.Context, p *bench.Progress) error {
	if err := w.store.create(ctx); err != nil {
		return fmt.Errorf("tpcc: tables: %w", err)
	}
	if err := w.target.Barrier(ctx); err != nil {
		return err
	}
	if err := w.loadItems(ctx, p); err != nil {
		return fmt.Errorf("tpcc: loading items: %w", err)
	}
	if err := w.loadWarehouses(ctx, p); err != nil {
		return fmt.Errorf("tpcc: loading: %w", err)
	}
	return nil
}

// Attach implements bench.Workload.
func (w *Workload) Attach(ctx context.Context) error { return w.store.create(ctx) }

// itemStream is the stream of random numbers for loading the items. Part n of the warehouses (see
// loadPart) has the stream itemStream + 1 + n.
const itemStream = 1

func (w *Workload) loadItems(ctx context.Context, p *bench.Progress) error {
	loaders, err := w.store.itemLoaders(ctx)
	if err != nil {
		return err
	}
	stage := p.Stage("loading items", len(loaders))
	defer stage.Done()
	var errs []error
	for _, l := range loaders {
		errs = append(errs, itemPart(newRandom(&w.cfg, w.loading, w.cfg.Seed, itemStream), l), l.close())
		stage.Add(1)
	}
	return errors.Join(errs...)
}

// loadWarehouses loads the parts of this process's warehouses, as many at a time as there are
// processors.
func (w *Workload) loadWarehouses(ctx context.Context, p *bench.Progress) error {
	mine := 0
	for n := range w.cfg.Warehouses {
		if w.target.IsMine(n) {
			mine++
		}
	}
	stage := p.Stage(fmt.Sprintf("loading %d warehouses", w.cfg.Warehouses), mine*w.cfg.rows())
	defer stage.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := atomic.Int64{}
	var loaders sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		loaders.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1) - 1)
				if n >= w.cfg.Warehouses*(1+districts) {
					return
				}
				if !w.target.IsMine(n / (1 + districts)) { // a process loads whole warehouses: those that partitionOf assigns to its machines
					continue
				}
				rows, err := w.loadPart(ctx, n)
				if err != nil {
					cancel(err)
				}
				stage.Add(rows)
			}
		})
	}
	loaders.Wait()
	return context.Cause(ctx)
}

// loadPart loads part n. Each warehouse has 1 + districts parts: its stock, then each district.
func (w *Workload) loadPart(ctx context.Context, n int) (rows int, err error) {
	warehouse, district := n/(1+districts)+1, n%(1+districts)
	l, err := w.store.warehouseLoader(ctx, warehouse)
	if err != nil {
		return 0, err
	}
	r := newRandom(&w.cfg, w.loading, w.cfg.Seed, itemStream+1+uint64(n))
	if district == 0 {
		rows, err = stockPart(r, l, warehouse)
	} else {
		rows, err = districtPart(r, l, warehouse, district)
	}
	return rows, errors.Join(err, l.close())
}

// NewClient implements bench.Workload.
func (w *Workload) NewClient(ctx context.Context, th *bench.Thread) (bench.Client, error) {
	db, warehouses, err := w.store.client(ctx, th, w.cfg.Warehouses)
	if err != nil {
		return nil, fmt.Errorf("tpcc: %w", err)
	}
	return &client{database: db, random: newRandom(&w.cfg, w.running, th.Seed, 0), warehouses: warehouses}, nil
}

// Check implements bench.Workload: it checks the consistency conditions.
func (w *Workload) Check(ctx context.Context) error {
	l := newLedger(&w.cfg)
	if err := w.store.read(ctx, l); err != nil {
		return fmt.Errorf("%w: %w", bench.ErrInconsistent, err)
	}
	w.entered = l.allOrders() - w.cfg.Warehouses*districts*w.cfg.Customers
	return l.check()
}

// Committed returns the kind New-Order, and the number of orders that the last Check has found, without
// those of Load: one for each customer.
func (w *Workload) Committed() (kind, n int) { return kindNewOrder, w.entered }

// A client enters transactions.
type client struct {
	database
	random     *random
	warehouses []int

	newOrder    newOrder
	payment     payment
	orderStatus orderStatus
	delivery    delivery
	stockLevel  stockLevel
}

// Do implements bench.Client.
func (c *client) Do(ctx context.Context) (kind int, err error) {
	kind = c.random.kind()
	err = c.enter(ctx, kind, c.warehouses[c.random.IntN(len(c.warehouses))])
	if errors.Is(err, errUnusedItem) {
		err = bench.ErrMiss
	}
	return kind, err
}

// enter draws a transaction of a kind and runs it.
func (c *client) enter(ctx context.Context, kind, warehouse int) error {
	switch kind {
	case kindNewOrder:
		c.newOrder.draw(c.random, warehouse)
		return c.database.newOrder(ctx, &c.newOrder)
	case kindPayment:
		c.payment.draw(c.random, warehouse)
		return c.database.payment(ctx, &c.payment)
	case kindOrderStatus:
		c.orderStatus.draw(c.random, warehouse)
		return c.database.orderStatus(ctx, &c.orderStatus)
	case kindDelivery:
		c.delivery.draw(c.random, warehouse)
		return c.database.delivery(ctx, &c.delivery)
	}
	c.stockLevel.draw(c.random, warehouse)
	return c.database.stockLevel(ctx, &c.stockLevel)
}

// Close implements bench.Client.
func (c *client) Close() error { return c.close() }
