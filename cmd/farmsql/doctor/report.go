package doctor

import (
	"encoding/json"
	"fmt"
	"io"
)

// A check examines one thing.
type check struct {
	name string
	by   users // the machines that use what the check examines; all if not set
	run  func(Host, Plan) Finding
}

// users is a group of machines that use what a check examines.
type users int

const (
	all      users = iota
	clusters       // machines that are processes
	sharing        // machines that share the memory of one host
	hosts          // machines on several hosts
	joiners        // machines on several hosts that are to join
)

// include reports whether the plan's machines belong to the group.
func (u users) include(p Plan) bool {
	switch u {
	case clusters:
		return p.IsCluster
	case sharing:
		return p.IsCluster && !p.IsTCP
	case hosts:
		return p.IsCluster && p.IsTCP
	case joiners:
		return p.Issuer != ""
	}
	return true
}

// checks are in the order in which they are printed: the computer, the data, the network, and what
// the machines of a cluster need beyond that.
var checks = []check{
	{name: "kernel", run: checkKernel},
	{name: "processors", run: checkProcessors},
	{name: "stolen time", run: checkStolen},
	{name: "clock", run: checkClock},
	{name: "memory", run: checkMemory},
	{name: "hugetlb", run: checkHugetlb},
	{name: "swap", run: checkSwap},
	{name: "open files", run: checkFiles},
	{name: "file system", run: checkFileSystem},
	{name: "room", run: checkRoom},
	{name: "reserving", run: checkReserving},
	{name: "huge pages", run: checkHugePages},
	{name: "saves", run: checkSaves},
	{name: "listening", run: checkListening},
	{name: "firewall", run: checkFirewall},
	{name: "RDMA", run: checkRDMA},
	{name: "real time", by: clusters, run: checkRealtime},
	{name: "pinning", by: clusters, run: checkPinning},
	{name: "shared folder", by: sharing, run: checkShared},
	{name: "datagrams", by: sharing, run: checkDatagrams},
	{name: "processes", by: sharing, run: checkDumpable},
	{name: "peers", by: hosts, run: checkPeers},
	{name: "first machine", by: joiners, run: checkIssuer},
	{name: "identity", by: hosts, run: checkIdentity},
	{name: "time of day", by: hosts, run: checkTimeOfDay},
}

// A Report has the findings of all checks.
type Report []Finding

// Examine runs all checks that concern the plan.
func Examine(h Host, p Plan) (r Report) {
	for _, c := range checks {
		if !c.by.include(p) {
			continue
		}
		f := c.run(h, p)
		f.Check = c.name
		r = append(r, f)
	}
	return r
}

// Count returns the number of findings with this result.
func (r Report) Count(result Result) (n int) {
	for _, f := range r {
		if f.Result == result {
			n++
		}
	}
	return n
}

// Print prints the report for people: a line for each finding, and two more lines if something is to be changed.
func (r Report) Print(w io.Writer) {
	const layout = "%-13s %-14s %s\n"
	for _, f := range r {
		fmt.Fprintf(w, layout, f.Result, f.Check, f.Found)
		if f.Costs != "" {
			fmt.Fprintf(w, layout, "", "", "costs: "+f.Costs)
			fmt.Fprintf(w, layout, "", "", "mend:  "+f.Mend)
		}
	}
}

// PrintJSON prints one JSON document a line, one for each finding.
func (r Report) PrintJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, f := range r {
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
