package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

// Accounts are the users and roles of an instance with their grants, as engines of one
// process use them. They are rows of the catalog. What go-mysql-server authenticates and
// authorizes by is a copy in memory, which is read again when the version in the catalog is
// another: always before a client is authenticated (Refresh), and before a statement if
// that was not looked at for Freshness. A statement about accounts changes a copy
// of its own, and of that the rows that differ, in its transaction: until that commits
// nobody sees anything of it.
//
// It is safe for concurrent use.
type Accounts struct {
	// db is the copy.
	db *mysql_db.MySQLDb
	// freshness is how old it may be where a statement begins; 0: any age, where only these
	// engines change accounts.
	freshness time.Duration
	clock     clock.Clock
	began     time.Time

	mu      lockrank.Mutex[lockrank.Accounts] // of who reads the catalog
	version uint64                            // of the copy, guarded by mu
	isRead  bool                              // guarded by mu
	// failure is what the last attempt to compare has failed with, and failed is when that
	// was, since began; guarded by mu.
	failure error
	failed  time.Duration
	// compared is when the copy was last known to be the catalog's, since began: time that
	// nobody can set back.
	compared atomic.Int64
	// isStale says that the catalog may have another version, whatever the age.
	isStale atomic.Bool
}

// Freshness is how old the accounts that a statement is authorized by may be where other
// machines change them, too: less than a lease.
const Freshness = 5 * time.Millisecond

// NewAccounts returns accounts for engines of one process, which have this clock. isShared
// says that other processes have engines of the instance, too.
func NewAccounts(c clock.Clock, isShared bool) *Accounts {
	a := &Accounts{db: mysql_db.CreateEmptyMySQLDb(), clock: c, began: c.Now()}
	a.db.SetEnabled(true)
	a.db.SetPersister(unchanged{})
	if isShared {
		a.freshness = Freshness
	}
	return a
}

// unchanged refuses changes of the copy itself.
type unchanged struct{}

// Persist implements mysql_db.MySQLDbPersistence.
func (unchanged) Persist(*gms.Context, []byte) error {
	return errors.New("sql: accounts are changed by statements only")
}

// RefreshAccounts sees to it that clients are authenticated by the accounts that are
// stored now.
func (e *Engine) RefreshAccounts(ctx context.Context) error {
	if e.opt.Accounts == nil {
		return nil
	}
	return e.opt.Accounts.refresh(ctx, e)
}

// now is the time since a began.
func (a *Accounts) now() time.Duration { return a.clock.Now().Sub(a.began) }

// refresh makes the copy the catalog's. Who waits for another attempt has its outcome, good
// or bad: many who wait where the catalog cannot be read fail at one time.
func (a *Accounts) refresh(ctx context.Context, e *Engine) error {
	asked := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case time.Duration(a.compared.Load()) > asked:
		return nil
	case a.failure != nil && a.failed > asked:
		return a.failure
	}
	err := a.refreshLocked(ctx, e)
	a.failure, a.failed = err, a.now()
	return err
}

func (a *Accounts) refreshLocked(ctx context.Context, e *Engine) error {
	at := a.now()
	wasStale := a.isStale.Swap(false) // who sets it from here on means a later version
	var version uint64
	var stored []account
	err := e.Store.Machine.Run(ctx, func(t *txn.Tx) (err error) {
		if version, err = e.Store.Catalog.AccountsVersion(t); err != nil || a.isRead && version == a.version {
			return err
		}
		stored, err = e.storedAccounts(t)
		return err
	})
	if err != nil {
		if wasStale {
			a.isStale.Store(true)
		}
		return myerr.Storage(err)
	}
	if !a.isRead || version != a.version {
		a.replace(stored)
		a.version, a.isRead = version, true
	}
	a.compared.Store(int64(at))
	return nil
}

// changed is called when a transaction that changes accounts is over, whatever its outcome
// is: it may have committed though nobody was told.
func (a *Accounts) changed(e *Engine) {
	a.isStale.Store(true)
	a.keepFresh(e)
}

// replace makes the copy stored, but for accounts that only this process has: none that is
// stored takes their place.
func (a *Accounts) replace(stored []account) {
	ed := a.db.Editor()
	defer ed.Close()
	var gone, own []mysql_db.UserPrimaryKey
	ed.VisitUsers(func(u *mysql_db.User) {
		k := mysql_db.UserPrimaryKey{Host: u.Host, User: u.User}
		if u.IsEphemeral {
			own = append(own, k)
		} else {
			gone = append(gone, k)
		}
	})
	for _, k := range gone {
		ed.RemoveUser(k)
		ed.RemoveRoleEdgesToKey(mysql_db.RoleEdgesToKey{ToHost: k.Host, ToUser: k.User})
	}
	for _, x := range stored {
		if !slices.Contains(own, x.name()) {
			x.putInto(ed)
		}
	}
}

// isOwn says whether an account is one that only this process has.
func (a *Accounts) isOwn(name mysql_db.UserPrimaryKey) bool {
	rd := a.db.Reader()
	defer rd.Close()
	u, ok := rd.GetUser(name)
	return ok && u.IsEphemeral
}

// keepFresh is called where a statement begins. It does not wait for a catalog that cannot
// be read now: the statement will find out whether that matters, and how long it may wait.
func (a *Accounts) keepFresh(e *Engine) {
	if a == nil || !a.isStale.Load() && (a.freshness == 0 || a.now()-time.Duration(a.compared.Load()) <= a.freshness) {
		return
	}
	if !a.mu.TryLock() { // somebody reads them
		return
	}
	defer a.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer a.clock.AfterFunc(refreshMax, cancel).Stop()
	_ = a.refreshLocked(ctx, e)
}

// refreshMax bounds what a statement waits for accounts.
const refreshMax = 20 * time.Millisecond

// usersSetting is where the version before kept all accounts in one object. It loads
// usersMoved as little as other bytes that it has not written: it does not start.
const usersSetting = "users"

var usersMoved = []byte("accounts are rows of the catalog now; this program is too old to read them")

// storedAccounts returns the accounts that the transaction finds: at first root, from the
// local host and without a password.
func (e *Engine) storedAccounts(t *txn.Tx) ([]account, error) {
	version, err := e.Store.Catalog.AccountsVersion(t)
	if err != nil {
		return nil, err
	}
	if version == 0 {
		return e.firstAccounts(t)
	}
	rows, err := e.Store.Catalog.Accounts(t)
	if err != nil {
		return nil, err
	}
	accounts := make([]account, len(rows))
	for i, row := range rows {
		if accounts[i], err = decodeAccount(row.Data); err != nil {
			return nil, fmt.Errorf("sql: account %q@%q: %w", row.User, row.Host, err)
		}
	}
	return accounts, nil
}

func (e *Engine) firstAccounts(t *txn.Tx) ([]account, error) {
	before, err := e.Store.Catalog.Setting(t, usersSetting)
	if err != nil {
		return nil, err
	}
	db := mysql_db.CreateEmptyMySQLDb()
	if len(before) == 0 {
		db.AddRootAccount()
		return accountsOf(db), nil
	}
	if err := loadUsers(db, before); err != nil {
		return nil, fmt.Errorf("sql: users of the version before: %w", err)
	}
	return accountsOf(db), nil
}
