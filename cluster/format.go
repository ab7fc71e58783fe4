package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/region"
)

// formatVersion is the newest version of an encoded configuration that this program understands.
// Version 1 had neither revisions nor incarnations. Version 2 had no tokens of memories; regions
// that are now in Away were lost. Version 3 had neither protocol versions of machines nor their
// addresses and zones. Version 4 had neither moves nor machines that are being drained. In version 5
// all regions should have the same number of replicas at any time.
const formatVersion = 6

// formats has, for each version of the protocol before the newest, the format that members of that
// version can read. Those of version 1 ignore fields that they do not know.
var formats = map[protocol.Version]int{protocol.First: 3, protocol.Ranges: 4, protocol.Moves: 5}

// format returns the version in which c is encoded: the newest that all its members can read.
func (c *Configuration) format() int {
	if format, isOlder := formats[c.Version()]; isOlder {
		return format
	}
	return formatVersion
}

// programName marks a configuration as farmsql's: another program may use the store, too.
const programName = "farmsql"

type storedConfiguration struct {
	Program       string
	Format        int
	Configuration *Configuration
	Root          []byte // Configuration.Root
}

// revision returns the revision of c, or 0 if c is nil.
func (c *Configuration) revision() uint64 {
	if c == nil {
		return 0
	}
	return c.Revision
}

// Encode returns c in the encoding that is stored and that NEW-CONFIG carries.
func (c *Configuration) Encode() []byte {
	b, err := json.Marshal(storedConfiguration{programName, c.format(), c, c.Root.Append(nil)})
	if err != nil { // cannot fail: c holds only numbers, texts and lists of them
		panic(fmt.Sprintf("cluster: encode a configuration: %v", err))
	}
	return b
}

// Decode decodes the encoding of Encode. It fails with ErrBadConfiguration; from says in the error's
// text where b comes from.
func Decode(from string, b []byte) (*Configuration, error) {
	// Read the format first: a newer one may have fields of another type.
	var head struct {
		Program string
		Format  int
	}
	if err := json.Unmarshal(b, &head); err == nil && head.Format > formatVersion && head.Program == programName {
		return nil, fmt.Errorf("%w: %s has format %d, this program knows formats up to %d: use a newer farmsql",
			ErrNewer, from, head.Format, formatVersion)
	}
	var stored storedConfiguration
	if err := json.Unmarshal(b, &stored); err != nil {
		return nil, fmt.Errorf("%w: %s was not written by farmsql: %v", ErrBadConfiguration, from, err)
	}
	c := stored.Configuration
	switch {
	case (stored.Format > 1 && stored.Program != programName) || stored.Format < 1 || c == nil:
		return nil, fmt.Errorf("%w: %s is incomplete, or was not written by farmsql", ErrBadConfiguration, from)
	}
	c.upgrade(stored.Format)
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrBadConfiguration, from, err)
	}
	root, err := region.DecodePtr(stored.Root)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: root object: %v", ErrBadConfiguration, from, err)
	}
	c.Root = root
	return c, nil
}

// upgrade sets the fields that a configuration of an older format lacks.
func (c *Configuration) upgrade(format int) {
	if format < 2 {
		c.Revision = uint64(c.ID)
		c.Incarnation = make([]uint64, len(c.Machines))
		c.Capacity = make([]int, len(c.Machines))
		for i := range c.Regions {
			c.Regions[i].Group = c.Regions[i].Region
		}
	}
	if format < 3 {
		c.Memory = make([]uint64, len(c.Machines))
	}
	if format < 4 && c.Address == nil && c.Zone == nil && c.Protocol == nil {
		c.Address, c.Zone, c.Protocol = make([]string, len(c.Machines)), make([]string, len(c.Machines)), make([]protocol.Range, len(c.Machines))
	}
}

// validate returns an error if c is not a valid configuration.
func (c *Configuration) validate() error {
	n := len(c.Machines)
	switch {
	case c.ID == 0 || c.Revision == 0:
		return errors.New("no identifier, or no revision")
	case n == 0 || len(c.FailureDomain) != n || len(c.Incarnation) != n || len(c.Memory) != n || len(c.Capacity) != n,
		len(c.Address) != n || len(c.Zone) != n || len(c.Protocol) != n:
		return errors.New("no machines, or not all that there is to know about them")
	case c.Replicas < 1:
		return fmt.Errorf("%d replicas", c.Replicas)
	}
	for i := 1; i < n; i++ {
		if c.Machines[i] <= c.Machines[i-1] {
			return fmt.Errorf("machine %d after machine %d", c.Machines[i], c.Machines[i-1])
		}
	}
	if err := c.validateProtocol(); err != nil {
		return err
	}
	if _, ok := c.Member(c.CM); !ok {
		return fmt.Errorf("machine %d, the configuration manager, is no member", c.CM)
	}
	last := region.ID(0)
	for _, p := range c.Regions {
		if p.Region <= last || p.Region >= c.NextRegion {
			return fmt.Errorf("region %d after region %d, the next to be made is %d", p.Region, last, c.NextRegion)
		}
		last = p.Region
		if err := c.validatePlacement(p); err != nil {
			return err
		}
	}
	return nil
}

// validatePlacement returns an error if a region's placement contradicts itself, or the machines of c.
func (c *Configuration) validatePlacement(p Placement) error {
	most := c.most(&p) - 1
	if p.Move != nil {
		most++
		if !p.IsAvailable() || !p.Has(p.Move.From) || !slices.Contains(p.Backups, p.Move.To) || p.Move.From == p.Move.To {
			return fmt.Errorf("region %d moves from machine %d to machine %d, which have no replicas of it for that", p.Region, p.Move.From, p.Move.To)
		}
	}
	if len(p.Backups) > most {
		return fmt.Errorf("region %d has %d backups, %d replicas are wanted", p.Region, len(p.Backups), c.most(&p))
	}
	if p.Had < 0 {
		return fmt.Errorf("region %d had %d replicas", p.Region, p.Had)
	}
	if err := c.validateAway(p); err != nil {
		return err
	}
	for i, m := range p.Replicas() {
		if _, ok := c.Member(m); !ok || slices.Contains(p.Replicas()[:i], m) {
			return fmt.Errorf("region %d has a replica on machine %d, which is unknown or has another", p.Region, m)
		}
	}
	for _, m := range p.Filling {
		if !slices.Contains(p.Backups, m) {
			return fmt.Errorf("region %d waits for machine %d, which is no backup of it", p.Region, m)
		}
	}
	for _, m := range p.Kept {
		if !slices.Contains(p.Filling, m) {
			return fmt.Errorf("region %d is not being filled at machine %d, which has kept some of it", p.Region, m)
		}
	}
	if p.LastPrimaryChange > c.ID || p.LastReplicaChange > c.ID {
		return fmt.Errorf("region %d has changed in a configuration after %d", p.Region, c.ID)
	}
	return nil
}

// validateAway returns an error if the memories that an unavailable region waits for are not valid.
func (c *Configuration) validateAway(p Placement) error {
	switch {
	case p.IsAvailable():
		return nil
	case p.Primary != p.Away[0].Machine:
		return fmt.Errorf("region %d waits for machine %d, its primary is machine %d", p.Region, p.Away[0].Machine, p.Primary)
	case len(p.Filling) != len(p.Backups):
		return fmt.Errorf("region %d waits for machine %d, though another has all of it", p.Region, p.Away[0].Machine)
	}
	for _, a := range p.Away {
		if m, ok := c.Member(a.Machine); ok && m.Memory == a.Token {
			return fmt.Errorf("region %d waits for machine %d, which is a member", p.Region, a.Machine)
		}
	}
	return nil
}
