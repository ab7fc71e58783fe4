package farm

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma/local"
	"github.com/farmsql/farmsql/region"
)

// Config sets the number of machines and the sizes of their memories. The zero value of each field
// stands for its default.
type Config struct {
	// Folder keeps one subfolder of non-volatile memory for each machine, and
	// the configuration. Empty means volatile memory: everything is gone when
	// the process ends.
	Folder string
	// Saves, if not empty, is a folder on storage that outlives a power cut.
	// Close saves everything there. If Folder is gone, as a tmpfs is after a
	// reboot, Open restores the instance from there.
	Saves string
	// Trust opens a folder that was in use when the computer went down, which
	// would otherwise be refused: see nvram.Options.
	Trust bool
	// Machines is how many machines run in this process; 1 by default.
	Machines int
	// Replicas is f+1, how many machines keep each region; 1 by default.
	Replicas int
	// Workers is how many workers each machine has; 2 by default.
	Workers int
	// RegionBytes is the size of a region, a power of two; 2 GB by default.
	// Memory is taken from the system as it comes into use.
	RegionBytes int64
	// LogBytes is the size of each transaction log; see DefaultLogBytes. Only
	// transactions marked with txn.Tx.MayBeLarge can write more than three
	// quarters of it.
	LogBytes int64
	// MessageBytes is the size of each message queue; 1 MB by default.
	MessageBytes int64
	// RegionsMax bounds the regions that a machine is primary of; 0 means no
	// bound.
	RegionsMax int

	Clock  clock.Clock
	Logger *slog.Logger

	// Volatile, if Folder is empty, holds the machines' memory and the configuration. It survives
	// Close, so that tests of recovery can open the instance again, as if only the processes had
	// ended.
	Volatile *Volatile

	// Network sets the behaviour of the machines' NICs. Tests make them asynchronous.
	Network local.Options

	// Each, if not nil, is called with the config of each machine of a Local, and may change it,
	// for instance to receive the machine's events.
	Each func(*MemberConfig)
}

const (
	logBytesMin     = 64 << 10
	logBytesMax     = 1 << 30
	messageBytesMin = 16 << 10
	machinesMax     = 1000
)

// WorkersMax bounds Settings.Workers. A machine that is a process of its own has room for 128 queues
// in its shared files (shm.WorkersMax): one for each worker, and one for probes. The bound holds for
// machines of one process, too, because an instance keeps its number of workers and its machines may
// become processes later.
const WorkersMax = 127

// ErrConfig matches every error of Config.Validate.
var ErrConfig = errors.New("farm: bad configuration")

// withDefaults sets the fields that are zero to their defaults.
func (c Config) withDefaults() Config {
	setDefault(&c.Machines, 1)
	setDefault(&c.Replicas, 1)
	setDefault(&c.Workers, 2)
	setDefault(&c.RegionBytes, 2<<30)
	setDefault(&c.LogBytes, DefaultLogBytes(c.Machines, c.Workers))
	setDefault(&c.MessageBytes, 1<<20)
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Volatile == nil {
		c.Volatile = NewVolatile()
	}
	return c
}

// DefaultLogBytes returns the default size of a log. A machine has a log for each worker of each
// machine. Together its logs take at most 1 GB, unless each would then have less than 2 MB: three
// quarters of a log must have room for the largest object, so that a transaction that is not large can
// write any object.
func DefaultLogBytes(machines, workers int) int64 {
	const (
		logsBytesMost = 1 << 30
		most          = 32 << 20
		least         = 2 * region.MaxObject
	)
	bytes := int64(most)
	for bytes > least && bytes*int64(machines)*int64(workers) > logsBytesMost {
		bytes /= 2
	}
	return bytes
}

func setDefault[T int | int64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Validate returns an error that names the first wrong setting of c.
func (c Config) Validate() error {
	c = c.withDefaults()
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Machines < 1 || c.Machines > machinesMax:
		return bad("machines is %d, must be from 1 to %d", c.Machines, machinesMax)
	case c.Replicas < 1 || c.Replicas > c.Machines:
		return bad("replicas is %d, must be from 1 to the number of machines, %d", c.Replicas, c.Machines)
	case c.Workers < 1 || c.Workers > WorkersMax:
		return bad("workers is %d, must be from 1 to %d", c.Workers, WorkersMax)
	case c.RegionBytes < region.MinSize || c.RegionBytes > region.MaxSize || bits.OnesCount64(uint64(c.RegionBytes)) != 1:
		return bad("region size is %d, must be a power of two from 1 MB to 4 GB", c.RegionBytes)
	case c.LogBytes < logBytesMin || c.LogBytes > logBytesMax || c.LogBytes%4096 != 0:
		return bad("log size is %d, must be a multiple of 4096 from %d to %d", c.LogBytes, logBytesMin, logBytesMax)
	case c.MessageBytes < messageBytesMin || c.MessageBytes > logBytesMax || c.MessageBytes%4096 != 0:
		return bad("message queue size is %d, must be a multiple of 4096 from %d to %d", c.MessageBytes, messageBytesMin, logBytesMax)
	case c.RegionsMax < 0:
		return bad("maximum of regions is %d, must not be negative", c.RegionsMax)
	}
	return nil
}
