package catalog

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/txn"
)

// An Account is a user or a role, as package sql encodes it.
type Account struct {
	User, Host string
	Data       []byte
}

// accountsVersion is the setting that counts the changes of accounts: a process with a copy of
// the accounts reads them again when the setting has changed.
const accountsVersion = "accounts"

// accountKey returns the directory's key of an account. Unlike other names it is case-sensitive.
func accountKey(user, host string) ([]byte, error) {
	if strings.ContainsRune(user, 0) || strings.ContainsRune(host, 0) {
		return nil, fmt.Errorf("catalog: account %q@%q: a zero byte", user, host)
	}
	return fmt.Appendf(nil, "%c%s\x00%s", nameAccount, user, host), nil
}

// AccountsVersion returns the number of changes of accounts so far; 0 if no account was ever
// stored.
func (c *Catalog) AccountsVersion(t *txn.Tx) (uint64, error) {
	b, err := c.Setting(t, accountsVersion)
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: version of accounts of %d bytes", ErrCorrupt, len(b))
	}
	return binary.LittleEndian.Uint64(b), nil
}

// Accounts returns all accounts, sorted by user and host.
func (c *Catalog) Accounts(t *txn.Tx) ([]Account, error) {
	lo, hi := ofKind(nameAccount)
	keys, ptrs, err := c.list(t, lo, hi)
	if err != nil {
		return nil, err
	}
	accounts := make([]Account, len(keys))
	for i, key := range keys {
		b, err := get(t, ptrs[i])
		if err != nil {
			return nil, err
		}
		user, host, _ := strings.Cut(string(key[1:]), "\x00")
		accounts[i] = Account{user, host, append([]byte{}, b...)}
	}
	return accounts, nil
}

// ChangeAccounts stores the accounts in put, each in place of the account with the same user and
// host, and removes the accounts in remove; it returns ErrNotFound if an account to be removed does
// not exist. It increments the version of the accounts, so that two concurrent changes of accounts
// conflict.
func (c *Catalog) ChangeAccounts(t *txn.Tx, put, remove []Account) error {
	version, err := c.AccountsVersion(t)
	if err != nil {
		return err
	}
	for _, a := range remove {
		if err := c.removeAccount(t, a); err != nil {
			return err
		}
	}
	for _, a := range put {
		if err := c.putAccount(t, a); err != nil {
			return err
		}
	}
	return c.PutSetting(t, accountsVersion, binary.LittleEndian.AppendUint64(nil, version+1))
}

func (c *Catalog) putAccount(t *txn.Tx, a Account) error {
	key, err := accountKey(a.User, a.Host)
	if err != nil {
		return err
	}
	return c.keep(t, key, a.Data)
}

// removeAccount frees an account, and removes its name. It returns ErrNotFound if there is none.
func (c *Catalog) removeAccount(t *txn.Tx, a Account) error {
	key, err := accountKey(a.User, a.Host)
	if err != nil {
		return err
	}
	p, ok, err := c.names.Get(t, key)
	if err != nil {
		return err
	}
	if !ok {
		return ErrNotFound
	}
	t.ToFree()
	if err := t.Free(p); err != nil {
		return err
	}
	return c.remove(t, key)
}
