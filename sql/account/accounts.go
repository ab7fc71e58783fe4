package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// Accounts are the users and roles of an instance with their grants, shared by the engines
// of one process. They are rows of the catalog. go-mysql-server authenticates and
// authorizes by a copy in memory. The copy is read again when the catalog has another
// version of the accounts: Refresh compares the versions before every authentication, and a
// statement compares them if the last comparison is older than Freshness. A statement about
// accounts changes a private copy, and writes the rows that differ in its transaction, so
// that nobody sees its changes before it commits.
//
// It is safe for concurrent use.
type Accounts struct {
	// db is the copy.
	db *mysql_db.MySQLDb
	// freshness is the greatest age that the copy may have when a statement begins; 0: any age,
	// because only these engines change accounts.
	freshness time.Duration
	clock     clock.Clock
	began     time.Time

	mu      lockrank.Mutex[lockrank.Accounts] // held to read the catalog
	version uint64                            // version of the copy; guarded by mu
	isRead  bool                              // guarded by mu
	// failure is the error of the last comparison with the catalog, and failed is its time,
	// since began; guarded by mu.
	failure error
	failed  time.Duration
	// compared is the time, since began, at which the copy was last known to equal the
	// catalog. A wall clock could be set back; this time cannot.
	compared atomic.Int64
	// isStale is set if the catalog may have another version, however young the copy is.
	isStale atomic.Bool
}

// Freshness is the greatest age of the accounts by which a statement is authorized, where
// other machines change accounts, too. It is less than a lease.
const Freshness = 5 * time.Millisecond

// New returns accounts for the engines of one process, with their clock. isShared is set if
// other processes have engines of the instance, too.
func New(c clock.Clock, isShared bool) *Accounts {
	a := &Accounts{db: mysql_db.CreateEmptyMySQLDb(), clock: c, began: c.Now()}
	a.db.SetEnabled(true)
	a.db.SetPersister(unchanged{})
	if isShared {
		a.freshness = Freshness
	}
	return a
}

// unchanged is a persister that refuses changes: only the catalog's rows change the copy.
type unchanged struct{}

// Persist implements mysql_db.MySQLDbPersistence.
func (unchanged) Persist(*gms.Context, []byte) error {
	return errors.New("sql: accounts are changed by statements only")
}

// DB returns the copy. Callers may add ephemeral users to it; all other users change only as the
// catalog's do.
func (a *Accounts) DB() *mysql_db.MySQLDb { return a.db }

// now is the time since a began.
func (a *Accounts) now() time.Duration { return a.clock.Now().Sub(a.began) }

// Refresh brings the copy up to date with the catalog, which it reads at the machine of st. Call
// it before a client is authenticated. A caller that waits for another caller's attempt takes
// over its outcome, success or failure: otherwise, if the catalog cannot be read, many callers would
// wait for it one after the other.
func (a *Accounts) Refresh(ctx context.Context, st *store.Store) error {
	asked := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case time.Duration(a.compared.Load()) > asked:
		return nil
	case a.failure != nil && a.failed > asked:
		return a.failure
	}
	err := a.refreshLocked(ctx, st)
	a.failure, a.failed = err, a.now()
	return err
}

// refreshLocked reads the accounts at the machine of st, if the catalog has another version of them than the copy.
func (a *Accounts) refreshLocked(ctx context.Context, st *store.Store) error {
	at := a.now()
	wasStale := a.isStale.Swap(false) // before the read: a change that the read misses sets isStale again
	var version uint64
	var stored []account
	err := st.Machine.Run(ctx, func(t *txn.Tx) (err error) {
		if version, err = st.Catalog.AccountsVersion(t); err != nil || (a.isRead && version == a.version) {
			return err
		}
		stored, err = storedIn(st.Catalog, t)
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

// changed is called when a transaction that changes accounts is over, whatever its outcome: it
// may have committed although its client received an error.
func (a *Accounts) changed(st *store.Store) {
	a.isStale.Store(true)
	a.KeepFresh(st)
}

// replace makes the copy equal to stored. Ephemeral accounts, which only this process has,
// stay, even if a stored account has the same name.
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

// isOwn reports whether an account is ephemeral: only this process has it.
func (a *Accounts) isOwn(name mysql_db.UserPrimaryKey) bool {
	rd := a.db.Reader()
	defer rd.Close()
	u, ok := rd.GetUser(name)
	return ok && u.IsEphemeral
}

// KeepFresh is called where a statement begins; a may be nil. If the catalog cannot be read now,
// KeepFresh does not wait for it: the statement finds out whether it needs the catalog, and how
// long it may wait.
func (a *Accounts) KeepFresh(st *store.Store) {
	if a == nil {
		return
	}
	isOld := a.freshness != 0 && a.now()-time.Duration(a.compared.Load()) > a.freshness
	if !isOld && !a.isStale.Load() {
		return
	}
	if !a.mu.TryLock() { // another goroutine is reading the accounts
		return
	}
	defer a.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer a.clock.AfterFunc(refreshMax, cancel).Stop()
	_ = a.refreshLocked(ctx, st)
}

// refreshMax bounds the time for which a statement waits for accounts.
const refreshMax = 20 * time.Millisecond

// usersSetting is the setting in which the previous version of farmsql kept all accounts, as one
// object. It now holds usersMoved, which that version cannot load: it refuses to start, instead
// of running without the accounts.
const usersSetting = "users"

var usersMoved = []byte("accounts are rows of the catalog now; this program is too old to read them")

// storedIn returns the accounts as the transaction reads them. A new instance has one account:
// root, from the local host, without a password.
func storedIn(cat *catalog.Catalog, t *txn.Tx) ([]account, error) {
	version, err := cat.AccountsVersion(t)
	if err != nil {
		return nil, err
	}
	if version == 0 {
		return firstIn(cat, t)
	}
	rows, err := cat.Accounts(t)
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

// firstIn returns the first accounts of an instance that has none in the catalog: those that the
// previous version of farmsql kept in usersSetting or, in a new instance, root.
func firstIn(cat *catalog.Catalog, t *txn.Tx) ([]account, error) {
	before, err := cat.Setting(t, usersSetting)
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
