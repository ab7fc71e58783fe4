package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/rdma"
)

// Settings are chosen when an instance is made, and all its machines have the same ones: they
// determine how many queues and logs machines have for each other, and where regions end. Only
// the number of replicas can change (Resize).
type Settings struct {
	// Replicas is Configuration.Replicas.
	Replicas int
	// Workers is the number of workers of each machine.
	Workers int
	// RegionBytes and LogBytes are the sizes of a region and of a transaction log.
	RegionBytes, LogBytes int64
}

// ErrSettings means that a machine has other settings than the instance.
var ErrSettings = errors.New("cluster: other settings than those of the instance")

// Settings returns the settings of c's instance.
func (c *Configuration) Settings() Settings {
	return Settings{Replicas: c.Replicas, Workers: c.Workers, RegionBytes: c.RegionBytes, LogBytes: c.LogBytes}
}

// A Difference is a setting in which two Settings differ, and its value in each.
type Difference struct {
	Name     string
	Was, Now int64
}

// Differences returns the settings in which s and other differ.
func (s Settings) Differences(other Settings) (differ []Difference) {
	for _, d := range []Difference{
		{"replicas", int64(s.Replicas), int64(other.Replicas)},
		{"workers", int64(s.Workers), int64(other.Workers)},
		{"region size", s.RegionBytes, other.RegionBytes},
		{"log size", s.LogBytes, other.LogBytes},
	} {
		if d.Was != d.Now {
			differ = append(differ, d)
		}
	}
	return differ
}

// Suits fails with ErrSettings if a machine has other settings than c's instance; the error
// names each setting with both values. It does not compare the zero Settings: earlier programs
// do not state their settings. Nor does it compare the numbers of replicas: a machine may have
// read a former number, and it uses the number in the configuration. Programs before version 4
// of the protocol compare them, but in their instances the number does not change.
func (c *Configuration) Suits(m rdma.MachineID, s Settings) error {
	if s == (Settings{}) {
		return nil
	}
	s.Replicas = c.Replicas
	var others []string
	for _, d := range c.Settings().Differences(s) {
		others = append(others, fmt.Sprintf("%s is %d in configuration %d and %d at machine %d", d.Name, d.Was, c.ID, d.Now, m))
	}
	if len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: start machine %d again, and it adopts those of the instance", ErrSettings, strings.Join(others, ", "), m)
}
