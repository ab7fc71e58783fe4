package join

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

const (
	machinesFile = "machines.json"
	tokensFolder = "tokens"
	// registryFormat is the version of machinesFile and of the files of tokens.
	registryFormat = 1
	// machinesMax bounds the number of machines that a cluster may ever have had.
	machinesMax = 1024
)

// Reasons why a machine is not admitted. The machine that asks is told them.
var (
	errSecret  = errors.New("this cluster does not know the token: it was made by another cluster, or removed; farmsql token --data FOLDER makes one at the machine that made the cluster")
	errExpired = errors.New("the token has expired: farmsql token --data FOLDER makes another at the machine that made the cluster")
	errUsedUp  = errors.New("the token has been used by other machines: farmsql token --data FOLDER makes another at the machine that made the cluster; if this machine had joined and lost its folder, it joins as a new machine")
	errMoved   = errors.New("this machine has joined at another address, and its certificate is for that")
	errFull    = fmt.Errorf("the cluster has had %d machines, and numbers go no further", machinesMax)
)

// An entry is a machine that has been admitted. The first is the issuer.
type entry struct {
	Machine rdma.MachineID
	Address string
	Key     string // hash of its public key
}

// storedMachines is the content of machinesFile.
type storedMachines struct {
	Program  string
	Format   int
	Machines []entry
}

// A storedToken is what the issuer keeps of a token, in a file named after the hash of its secret.
type storedToken struct {
	Program string
	Format  int
	Expires time.Time
	Uses    int      // how many machines may join with it
	Keys    []string // hashes of the public keys of the machines that have joined with it
}

// A registry is the issuer's list of machines and tokens. It is safe for concurrent use.
type registry struct {
	folder   string
	founders int

	mu       sync.Mutex
	machines []entry // in ascending order of their numbers, some of which may be left out
	floor    int     // no machine gets a number below this one
}

// createRegistry makes the registry of a new cluster, with the issuer as its only machine.
func createRegistry(folder, address, key string) error {
	return saveMachines(folder, []entry{{Machine: 0, Address: address, Key: key}})
}

func saveMachines(folder string, machines []entry) error {
	return saveJSON(filepath.Join(folder, machinesFile), storedMachines{programName, registryFormat, machines})
}

// openRegistry reads the registry of a folder.
func openRegistry(folder string, founders int) (*registry, error) {
	var s storedMachines
	path := filepath.Join(folder, machinesFile)
	if err := loadJSON(path, &s, func() (string, int) { return s.Program, s.Format }); err != nil {
		return nil, err
	}
	for i, e := range s.Machines {
		if i > 0 && e.Machine <= s.Machines[i-1].Machine {
			return nil, fmt.Errorf("%w: %s: machine %d comes after machine %d", ErrDamaged, path, e.Machine, s.Machines[i-1].Machine)
		}
	}
	return &registry{folder: folder, founders: founders, machines: s.Machines}, nil
}

// loadJSON reads a file that saveJSON has written; header returns its program and format once it is read.
func loadJSON(path string, into any, header func() (program string, format int)) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	err = json.Unmarshal(b, into)
	program, format := header()
	if err != nil || program != programName || format < 1 {
		return fmt.Errorf("%w: %s was not written by farmsql", ErrDamaged, path)
	}
	if format > registryFormat {
		return fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer farmsql", ErrNewer, path, format, registryFormat)
	}
	return nil
}

// store returns the addresses of the founders, or nil and how many are missing.
func (r *registry) store() (founders map[rdma.MachineID]string, missing int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	founders = make(map[rdma.MachineID]string)
	for _, e := range r.machines {
		if int(e.Machine) < r.founders {
			founders[e.Machine] = e.Address
		}
	}
	if missing = r.founders - len(founders); missing > 0 {
		return nil, missing
	}
	return founders, 0
}

// isOf reports whether the registry is of the cluster that a machine knows: it has the machine, and the
// founders if they are known. An old copy may lack some.
func (r *registry) isOf(id *Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := func(m rdma.MachineID, address string) bool {
		return slices.ContainsFunc(r.machines, func(e entry) bool { return e.Machine == m && e.Address == address })
	}
	for m, address := range id.Store {
		if !has(m, address) {
			return false
		}
	}
	return has(id.Machine, id.Advertise)
}

// reserve makes sure that no machine gets the number m, or a lower one.
func (r *registry) reserve(m rdma.MachineID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.floor = max(r.floor, int(m)+1)
}

// isFoundedLocked reports whether all founders have joined. From then on they have votes, and none can
// be replaced.
func (r *registry) isFoundedLocked() bool { return len(r.machines) >= r.founders } // the first have the lowest numbers

// check returns an error if a machine with this key may not join with a secret. It does not count the use.
func (r *registry) check(secret []byte, key string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _, err := r.tokenLocked(secret, key, now)
	return err
}

// admit gives a machine that knows a token's secret its number, and writes it down. A machine
// that is known by its key keeps its number. It may come with another address while founders
// are missing, since nobody has been told its address until then.
func (r *registry) admit(secret []byte, address, key string, now time.Time) (rdma.MachineID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.useLocked(secret, key, now); err != nil {
		return 0, err
	}
	if i := slices.IndexFunc(r.machines, func(e entry) bool { return e.Key == key }); i >= 0 {
		if r.machines[i].Address == address {
			return r.machines[i].Machine, nil
		}
		if r.isFoundedLocked() {
			return 0, fmt.Errorf("%w: %s", errMoved, r.machines[i].Address)
		}
		machines := slices.Clone(r.machines)
		machines[i].Address = address
		return machines[i].Machine, r.saveLocked(machines)
	}
	machines, number := r.withLocked(address, key)
	if number >= machinesMax {
		return 0, errFull
	}
	return rdma.MachineID(number), r.saveLocked(machines)
}

func (r *registry) saveLocked(machines []entry) error {
	if err := saveMachines(r.folder, machines); err != nil {
		return err
	}
	r.machines = machines
	return nil
}

// withLocked returns the machines with one more, and its number. While founders are missing,
// the new machine takes the place of one with the same address, other than the issuer, whose folder must
// have been lost.
func (r *registry) withLocked(address, key string) (machines []entry, number int) {
	machines = slices.Clone(r.machines)
	if !r.isFoundedLocked() {
		if i := slices.IndexFunc(machines, func(e entry) bool { return e.Machine != 0 && e.Address == address }); i >= 0 {
			machines[i].Key = key
			return machines, int(machines[i].Machine)
		}
	}
	number = max(r.floor, int(machines[len(machines)-1].Machine)+1)
	return append(machines, entry{Machine: rdma.MachineID(number), Address: address, Key: key}), number
}

// useLocked counts a use of a token by a key, unless the key has used it before. The use is
// written down before the machine is: if the process is killed in between, the machine asks
// again, and only that machine can.
func (r *registry) useLocked(secret []byte, key string, now time.Time) error {
	path, t, err := r.tokenLocked(secret, key, now)
	if err != nil || slices.Contains(t.Keys, key) {
		return err
	}
	t.Keys = append(t.Keys, key)
	return saveJSON(path, t)
}

// tokenLocked returns the token of a secret, and an error if a machine with this key cannot use it.
func (r *registry) tokenLocked(secret []byte, key string, now time.Time) (path string, t storedToken, err error) {
	path = filepath.Join(r.folder, tokensFolder, hashOf(secret)+".json")
	err = loadJSON(path, &t, func() (string, int) { return t.Program, t.Format })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, t, errSecret
	case err != nil || slices.Contains(t.Keys, key):
		return path, t, err // a key that has used the token may always use it again
	case now.After(t.Expires):
		return path, t, errExpired
	case len(t.Keys) >= t.Uses:
		return path, t, errUsedUp
	}
	return path, t, nil
}

// knows reports whether a key is that of a machine that has been admitted.
func (r *registry) knows(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.machines, func(e entry) bool { return e.Key == key })
}

// saveToken keeps a new token in the issuer's folder.
func saveToken(folder string, t Token, uses int, expires time.Time) error {
	if err := makeFolder(filepath.Join(folder, tokensFolder)); err != nil {
		return err
	}
	path := filepath.Join(folder, tokensFolder, hashOf(t.Secret[:])+".json")
	return saveJSON(path, storedToken{Program: programName, Format: registryFormat, Expires: expires, Uses: uses})
}
