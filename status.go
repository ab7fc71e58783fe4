package farmsql

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/rdma"
)

// A Status is the state of an instance as one machine sees it. farmsql status --json prints it as
// JSON.
type Status struct {
	// Source is the origin of the status: StatusOfMachine, StatusOfProcess or StatusStored.
	Source string `json:"source"`
	// Machine is the machine whose view this is, in StatusOfMachine. Process is the number (PID) of
	// the process that answered.
	Machine int `json:"machine"`
	Process int `json:"process,omitempty"`

	Cluster       string          `json:"cluster"` // identifies the instance
	Configuration int             `json:"configuration"`
	Revision      uint64          `json:"revision"`
	Replicas      int             `json:"replicas"` // how many replicas each region should have; see Short and Resize
	Protocol      int             `json:"protocol"` // the version that the instance speaks
	Machines      []MachineStatus `json:"machines"`
	Regions       []RegionStatus  `json:"regions"`
	Root          int             `json:"root,omitempty"` // the region of the object that points to everything else
	Lost          []int           `json:"lost"`           // regions that an operator has given up
	Joining       []int           `json:"joining"`        // machines that wait to be admitted; only the CM's status lists them
	// Founders are the machines that keep the configuration, as the machine knows them; empty if it is kept
	// elsewhere. Only in StatusOfMachine.
	Founders []FounderStatus `json:"founders,omitempty"`
	// FoundersWanted is how many machines should keep the configuration, if these are fewer: after farmsql refound, or since
	// regions have more replicas than those that the cluster was made for.
	FoundersWanted int `json:"foundersWanted,omitempty"`
	// FoundersRival says that another machine keeps a configuration of this cluster, too; empty if none has been heard of
	// for a minute.
	FoundersRival string `json:"foundersRival,omitempty"`

	// Short are the regions that have fewer complete replicas than they should, including
	// unavailable ones; ascending.
	Short []int `json:"short,omitempty"`
	// Resize says how far a change of the number of replicas is, nil if none is going on.
	Resize *ResizeStatus `json:"resize,omitempty"`
	// MovesAwait says what moves away from machines that are being drained, and regions that
	// are to get or lose replicas, wait for: a region that is unavailable, moves, or is being
	// filled. The CM's status also names other things that keep the CM from moving. It is empty
	// if nothing is known.
	MovesAwait string `json:"movesAwait,omitempty"`
	// BalanceInMS is the time in milliseconds until regions move, or get another primary, to
	// even out the machines; 0 if there is nothing to even out, or no time left to wait. Only
	// in the CM's status.
	BalanceInMS float64 `json:"balanceInMS,omitempty"`

	Lease    *LeaseStatus   `json:"lease,omitempty"` // only in StatusOfMachine
	Recovery RecoveryStatus `json:"recovery"`
	// Starting says what a machine that is being opened waits for. Only in StatusOfMachine.
	Starting string `json:"starting,omitempty"`
	// Unavailable is the reason why the machine does not serve clients at present. Missing are the
	// machines that are needed for a majority. Only in StatusOfMachine.
	Unavailable string `json:"unavailable,omitempty"`
	Missing     []int  `json:"missing,omitempty"`
	// Ended is the reason why the machine is no longer part of the instance.
	Ended string `json:"ended,omitempty"`
}

// Values of Status.Source.
const (
	StatusOfMachine = "machine" // a machine that is a process of its own
	StatusOfProcess = "process" // a process with all machines of the instance
	StatusStored    = "stored"  // the stored configuration; no machine was asked
)

// A MachineStatus is one machine of the configuration.
type MachineStatus struct {
	Machine int `json:"machine"`
	// FailureDomain is 0 if the machine is in a failure domain of its own.
	FailureDomain int    `json:"failureDomain"`
	Incarnation   string `json:"incarnation"`
	// Address and Zone say where the machine is. It speaks the protocol versions from ProtocolMin
	// to ProtocolMax. A machine of an earlier program version does not report its address and zone.
	Address     string `json:"address,omitempty"`
	Zone        string `json:"zone,omitempty"`
	ProtocolMin int    `json:"protocolMin"`
	ProtocolMax int    `json:"protocolMax"`
	IsCM        bool   `json:"cm"`
	IsSuspected bool   `json:"suspected"`
	// IsDraining says that the machine is to have no replicas: see Operator.Drain. Obstacle
	// says why the replicas that it has cannot move away; it is empty if they can.
	IsDraining bool   `json:"draining"`
	Obstacle   string `json:"obstacle,omitempty"`
	// GrantedMS is how many milliseconds are left of the lease that the viewing machine
	// (Status.Machine) has granted to this one. HeldMS is how many are left of the lease that
	// the viewing machine holds from this one. They are negative if the lease has run out, and
	// nil if the two exchange no leases.
	GrantedMS *float64 `json:"grantedMS,omitempty"`
	HeldMS    *float64 `json:"heldMS,omitempty"`
}

// A FounderStatus is one of the machines that keep the configuration.
type FounderStatus struct {
	Machine int    `json:"machine"`
	Address string `json:"address"`
	// IsGone says that the machine was forgotten, and is to be replaced. Successor is the machine that is about
	// to take its place; nil if none is.
	IsGone    bool `json:"gone,omitempty"`
	Successor *int `json:"successor,omitempty"`
}

// A RegionStatus says which machines have the replicas of one region.
type RegionStatus struct {
	Region int `json:"region"`
	// Primary is -1 if the region is unavailable: see Away.
	Primary int   `json:"primary"`
	Backups []int `json:"backups"`
	// Filling are the backups that do not have all of the region yet.
	Filling []int `json:"filling"`
	// Away lists, ascending, the machines whose memory has all of an unavailable region: it can be
	// used again when one of them comes back with its memory.
	Away []int `json:"away"`
	// Move is the move of one of the replicas, nil if none moves.
	Move *MoveStatus `json:"move,omitempty"`
	// Group is the lowest of the regions that move together with this one.
	Group int `json:"group"`
	// Pinned are the machines where an operator has put a replica: see Operator.Move.
	Pinned []int `json:"pinned,omitempty"`
}

// A ResizeStatus says how far the change to another number of replicas is: see Operator.Resize.
type ResizeStatus struct {
	// Regions is how many regions do not yet have exactly Status.Replicas replicas, all of them
	// complete. Obstacle says why these regions cannot get them; it is empty if they can.
	Regions  int    `json:"regions"`
	Obstacle string `json:"obstacle,omitempty"`
}

// A MoveStatus says that the replica at From leaves when the one at To has all of the region.
type MoveStatus struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// ReplicasAt returns how many replicas a machine has.
func (s Status) ReplicasAt(machine int) (n int) {
	for _, r := range s.Regions {
		if r.Primary == machine {
			n++
		}
		if slices.Contains(r.Backups, machine) {
			n++
		}
	}
	return n
}

// A LeaseStatus describes a machine's leases.
type LeaseStatus struct {
	IsValid  bool    `json:"valid"` // the machine holds a valid lease
	LengthMS float64 `json:"lengthMS"`
	KeptBy   string  `json:"keptBy"`
}

// A RecoveryStatus describes the progress of recovery.
type RecoveryStatus struct {
	// IsGoing says that, as far as the machine knows, not all regions are active yet.
	IsGoing bool `json:"going"`
	// Transactions is the progress of the recovery of transactions.
	Transactions string `json:"transactions,omitempty"`
	// FillingReplicas is the number of replicas that do not have all of their region yet.
	FillingReplicas int `json:"fillingReplicas"`
}

// Status returns the instance's state.
func (db *DB) Status() Status { return db.operator.Status() }

// StoredStatus returns the status that is stored at url, which has the form of Config.Cluster. It
// works even if no machine of the instance runs.
func StoredStatus(url string) (Status, error) {
	store, err := cluster.Open(url)
	if err != nil {
		return Status{}, withPrefix("", err)
	}
	defer store.Close()
	c, err := store.Load()
	if err != nil {
		return Status{}, withPrefix("", err)
	}
	if c == nil {
		return Status{}, fmt.Errorf("farmsql: there is no configuration at %s", url)
	}
	s := statusOf(farm.Status{Configuration: c})
	s.Source = StatusStored
	return s, nil
}

// statusOf converts f, and leaves out the fields that depend on the source.
func statusOf(f farm.Status) Status {
	s := Status{
		Machines: []MachineStatus{}, Regions: []RegionStatus{}, Lost: []int{}, Joining: ints(f.Joining),
		Recovery: RecoveryStatus{IsGoing: f.IsRecovering, Transactions: f.Recovery},
	}
	if f.Err != nil {
		s.Ended = f.Err.Error()
	}
	c := f.Configuration
	if c == nil {
		return s
	}
	s.Cluster, s.Configuration, s.Revision, s.Replicas = fmt.Sprintf("%016x", c.Cluster), int(c.ID), c.Revision, c.Replicas
	s.Root, s.Protocol = int(c.Root.Addr.Region()), int(c.Version())
	for i := range c.Machines {
		s.Machines = append(s.Machines, machineStatus(c, i, f))
	}
	for _, p := range c.Regions {
		s.Regions = append(s.Regions, regionStatus(p))
		s.Recovery.FillingReplicas += len(p.Filling)
		if isShort(c, &p) {
			s.Short = append(s.Short, int(p.Region))
		}
	}
	s.Resize = resizeStatus(c)
	isStillDraining := func(m MachineStatus) bool { return m.IsDraining && s.ReplicasAt(m.Machine) > 0 }
	if s.Resize != nil || len(s.Short) > 0 || slices.ContainsFunc(s.Machines, isStillDraining) {
		s.MovesAwait = cmp.Or(c.StandsStill(), f.MovesAwait)
	}
	s.BalanceInMS = milliseconds(f.BalanceIn)
	for _, r := range c.Lost {
		s.Lost = append(s.Lost, int(r))
	}
	return s
}

// isShort reports whether a region has fewer complete replicas than it should.
func isShort(c *cluster.Configuration, p *cluster.Placement) bool {
	return !p.IsAvailable() || len(p.Replicas())-len(p.Filling) < c.Replicas
}

// resizeStatus returns how far a change of the number of replicas is, or nil if none is going on.
func resizeStatus(c *cluster.Configuration) *ResizeStatus {
	if len(c.Resizing()) == 0 {
		return nil
	}
	s := new(ResizeStatus)
	for _, p := range c.Regions {
		if p.Had != 0 || isShort(c, &p) {
			s.Regions++
		}
	}
	if err := c.CheckResize(); err != nil {
		s.Obstacle = ours(err).Error()
	}
	return s
}

func regionStatus(p cluster.Placement) RegionStatus {
	r := RegionStatus{
		Region: int(p.Region), Primary: int(p.Primary), Backups: ints(p.Backups), Filling: ints(p.Filling), Away: []int{},
		Group: int(p.Group),
	}
	if len(p.Pinned) > 0 {
		r.Pinned = ints(p.Pinned)
	}
	if p.Move != nil {
		r.Move = &MoveStatus{int(p.Move.From), int(p.Move.To)}
	}
	if !p.IsAvailable() {
		r.Primary = -1
	}
	for _, a := range p.Away {
		r.Away = append(r.Away, int(a.Machine))
	}
	slices.Sort(r.Away)
	r.Away = slices.Compact(r.Away)
	return r
}

// machineStatus returns the status of machine i of c.
func machineStatus(c *cluster.Configuration, i int, f farm.Status) MachineStatus {
	id := c.Machines[i]
	m := MachineStatus{
		Machine: int(id), FailureDomain: c.FailureDomain[i], Incarnation: fmt.Sprintf("%016x", c.Incarnation[i]),
		IsCM: id == c.CM, IsSuspected: slices.Contains(f.Suspects, id), IsDraining: c.IsDraining(id),
	}
	if m.IsDraining {
		if err := c.CheckDrain(id); err != nil {
			m.Obstacle = ours(err).Error()
		}
	}
	speaks := c.Protocol[i].Stated()
	m.Address, m.Zone, m.ProtocolMin, m.ProtocolMax = c.Address[i], c.Zone[i], int(speaks.Min), int(speaks.Max)
	if m.FailureDomain > failureDomainMax {
		m.FailureDomain = 0
	}
	at := slices.IndexFunc(f.Leases, func(l lease.Lease) bool { return l.Machine == id })
	if at >= 0 {
		granted, held := milliseconds(f.Leases[at].Left), milliseconds(f.Leases[at].Held)
		m.GrantedMS, m.HeldMS = &granted, &held
	}
	return m
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond)) / 1e6 }

func ints(machines []rdma.MachineID) []int {
	list := []int{} // never null in JSON
	for _, m := range machines {
		list = append(list, int(m))
	}
	return list
}
