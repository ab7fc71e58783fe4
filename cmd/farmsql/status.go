package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// statusSocket is the name of the socket at which a process reports its state, as one
// JSON document for each connection. It is in the folder of a machine that is a
// process, otherwise in the data folder.
const statusSocket = "status.sock"

// statusPatience is how long a process may take to answer.
const statusPatience = 2 * time.Second

type statusCommand struct {
	Data      string `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder whose processes are asked (${default})."`
	MachineID *int   `placeholder:"N" help:"Ask this machine only."`
	Cluster   string `placeholder:"URL" help:"If no machine answers, show the configuration that is stored there: file://PATH or zk://HOST:PORT,HOST:PORT/PATH."`
	JSON      bool   `name:"json" help:"Print one JSON document a line, one for each machine that answers."`
}

// Help is shown by status --help.
func (statusCommand) Help() string {
	return `
Asks the processes that have the data folder, and shows configuration, machines, leases, regions
and what recovery is doing, as seen by the machine with the newest configuration. A region that is
UNAVAILABLE waits for a machine that has all of it: start that machine (or see farmsql forget). An
instance all of whose machines run in one process has no leases. Exits 1 if no process answers, or
none of those that answer serves clients.`
}

// Run asks and prints.
func (c *statusCommand) Run(std cli.Streams) error {
	answers := c.ask()
	var good []statusAnswer
	for _, a := range answers {
		if a.err == nil {
			good = append(good, a)
		}
	}
	switch {
	case len(good) > 0 && c.JSON:
		return errors.Join(printStatusJSON(std.Out, good), serving(good))
	case len(good) > 0:
		best := slices.MaxFunc(good, func(a, b statusAnswer) int { return a.weight() - b.weight() })
		printStatus(std.Out, best.Status)
		printOthers(std.Out, answers, best)
		return serving(good)
	case c.Cluster != "":
		return c.stored(std)
	}
	return c.nobody(answers)
}

// errNotServing makes status exit with 1, after it has printed the state.
var errNotServing = errors.New("nobody serves clients")

// serving returns errNotServing if none of the answers is from a machine that serves
// clients.
func serving(answers []statusAnswer) error {
	if slices.ContainsFunc(answers, func(a statusAnswer) bool { return a.Unavailable == "" && a.Ended == "" && a.Starting == "" }) {
		return nil
	}
	return errNotServing
}

// ask asks every process that has locked the folder, or a part of it.
func (c *statusCommand) ask() []statusAnswer {
	folders := []string{c.Data}
	if c.MachineID != nil {
		folders = nil
	}
	for _, m := range machineFolders(c.Data) {
		if c.MachineID == nil || m == *c.MachineID {
			folders = append(folders, machineFolder(c.Data, m))
		}
	}
	var answers []statusAnswer
	for _, folder := range folders {
		s, err := askStatus(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue // no process has served from this folder
		}
		answers = append(answers, statusAnswer{s, folder, err})
	}
	return answers
}

// stored prints the configuration that is stored at --cluster.
func (c *statusCommand) stored(std cli.Streams) error {
	s, err := farmsql.StoredStatus(c.Cluster)
	if err != nil {
		return err
	}
	if c.JSON {
		return printStatusJSON(std.Out, []statusAnswer{{Status: s}})
	}
	printStatus(std.Out, s)
	return nil
}

// nobody returns the error for a command to which no process has answered.
func (c *statusCommand) nobody(answers []statusAnswer) error {
	var failures []string
	for _, a := range answers {
		failures = append(failures, fmt.Sprintf("; %s: %v", a.folder, a.err))
	}
	who := "no process"
	if c.MachineID != nil {
		who = fmt.Sprintf("no machine %d", *c.MachineID)
	}
	return fmt.Errorf("%s answers in %s (farmsql serve starts one, and with --cluster what is stored is shown)%s", who, c.Data, strings.Join(failures, ""))
}

// A statusAnswer is the answer of the process that has locked a folder, or its error.
type statusAnswer struct {
	farmsql.Status
	folder string
	err    error
}

// weight orders answers by how recent they are. An answer with a newer configuration weighs more;
// with equal configurations, the CM's answer does.
func (a statusAnswer) weight() int {
	w := 2 * a.Configuration
	for _, m := range a.Machines {
		if m.IsCM && m.Machine == a.Machine {
			w++
		}
	}
	return w
}

// machineFolder returns the folder of a machine that is a process.
func machineFolder(data string, machine int) string {
	return filepath.Join(data, machinePrefix+strconv.Itoa(machine))
}

const machinePrefix = "machine-"

// machineFolders lists the machines that have a folder in a data folder.
func machineFolders(data string) []int {
	found, _ := filepath.Glob(filepath.Join(data, machinePrefix+"*")) // the pattern is good
	var machines []int
	for _, f := range found {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(f), machinePrefix)); err == nil && n >= 0 {
			machines = append(machines, n)
		}
	}
	slices.Sort(machines)
	return machines
}

// serveStatus answers at the status socket in a folder, which this process has locked.
func serveStatus(folder string, status func() farmsql.Status) (*socketServer, error) {
	return serveSocket(folder, statusSocket, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(statusPatience))
		_ = json.NewEncoder(c).Encode(status()) // fails only if the client has gone
	})
}

// askStatus asks the process that has locked a folder. It fails with fs.ErrNotExist if
// there is no socket.
func askStatus(folder string) (s farmsql.Status, err error) {
	err = askSocket(folder, statusSocket, statusPatience, nil, &s)
	var e *json.SyntaxError
	if errors.As(err, &e) {
		err = fmt.Errorf("answers what is no status: %w", err)
	}
	return s, err
}

func printStatusJSON(w io.Writer, answers []statusAnswer) error {
	for _, a := range answers {
		b, err := json.Marshal(a.Status)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", b)
	}
	return nil
}

// printStatus prints s for people.
func printStatus(w io.Writer, s farmsql.Status) {
	if s.Configuration == 0 { // the machine is starting, and knows no configuration yet
		fmt.Fprintf(w, "no configuration yet, %s\n", sourceText(s))
	} else {
		fmt.Fprintf(w, "configuration %d (revision %d) of cluster %s, %s\n", s.Configuration, s.Revision, s.Cluster, sourceText(s))
	}
	if s.Starting != "" {
		fmt.Fprintf(w, "starting: machine %d %s\n", s.Machine, s.Starting)
	}
	if s.Ended != "" {
		fmt.Fprintf(w, "the machine has no part any more: %s\n", s.Ended)
	}
	if s.Unavailable != "" && s.Starting == "" { // Starting says more than Unavailable
		fmt.Fprintf(w, "NOT AVAILABLE: machine %d serves nobody: %s\n", s.Machine, s.Unavailable)
	}
	fmt.Fprintln(w)
	printMachines(w, s)
	fmt.Fprintln(w)
	printRegions(w, s)
	if s.Source != farmsql.StatusStored { // a stored configuration does not have what follows
		fmt.Fprintf(w, "\nrecovery: %s\n", recoveryText(s.Recovery))
	}
	if s.Lease != nil {
		fmt.Fprintf(w, "leases:   %v, kept by a %s; the one of machine %d is %s\n", duration(s.Lease.LengthMS), s.Lease.KeptBy, s.Machine, validText(s.Lease.IsValid))
	}
	if s.BalanceInMS > 0 {
		fmt.Fprintf(w, "balance:  regions move, or get another primary, in %v, if the members stay the same\n", duration(s.BalanceInMS).Round(time.Second))
	}
	if s.Resize != nil {
		fmt.Fprintf(w, "resize:   regions get %s; %d of %d do not have them yet\n", plural(s.Replicas, "replica", "replicas"), s.Resize.Regions, len(s.Regions))
	}
	if s.Resize == nil && len(s.Short) > 0 {
		fmt.Fprintf(w, "short:    %s fewer than %d complete replicas%s\n", plural(len(s.Short), "region has", "regions have"), s.Replicas, knownTo(s))
	}
	if len(s.Joining) > 0 {
		fmt.Fprintf(w, "joining:  %s\n", list(s.Joining))
	}
	if len(s.Founders) > 0 {
		fmt.Fprintf(w, "founders: %s\n", foundersText(s.Founders, s.FoundersWanted))
	}
	if s.FoundersRival != "" {
		fmt.Fprintf(w, "PROBLEM:  %s\n", s.FoundersRival)
	}
}

// knownTo says whose view it is that regions lack replicas: only the CM learns at once that replicas are filled.
func knownTo(s farmsql.Status) string {
	if cm := cmOf(s); cm != s.Machine && isOnlyFilling(s) {
		return fmt.Sprintf(", as far as machine %d knows; machine %d, the configuration manager, knows more", s.Machine, cm)
	}
	return ""
}

// foundersText says which machines keep the configuration, and which of them are to be replaced.
func foundersText(founders []farmsql.FounderStatus, wanted int) string {
	var all, notes []string
	for _, f := range founders {
		all = append(all, strconv.Itoa(f.Machine))
		switch {
		case f.Successor != nil:
			notes = append(notes, fmt.Sprintf("machine %d is about to take the place of machine %d, which is gone", *f.Successor, f.Machine))
		case f.IsGone:
			notes = append(notes, fmt.Sprintf("machine %d is gone, and a member that is none of them will take its place", f.Machine))
		}
	}
	if wanted > len(founders) {
		notes = append(notes, fmt.Sprintf("there should be %d: other members will be given votes; if too few, add machines", wanted))
	}
	verb := "machines " + strings.Join(all, " ") + " keep"
	if len(all) == 1 {
		verb = "machine " + all[0] + " alone keeps"
	}
	return strings.Join(append([]string{verb + " the configuration"}, notes...), "; ")
}

func sourceText(s farmsql.Status) string {
	switch s.Source {
	case farmsql.StatusOfMachine:
		return fmt.Sprintf("as machine %d (process %d) sees it", s.Machine, s.Process)
	case farmsql.StatusOfProcess:
		return fmt.Sprintf("all of it in process %d", s.Process)
	}
	return "as it is stored; no machine was asked"
}

func printMachines(w io.Writer, s farmsql.Status) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "machine\tdomain\tincarnation\tlease")
	hasHosts := slices.ContainsFunc(s.Machines, func(m farmsql.MachineStatus) bool { return hostOf(m) != "" })
	if hasHosts {
		fmt.Fprint(t, "\taddress")
	}
	fmt.Fprintln(t)
	for _, m := range s.Machines {
		domain := "own"
		if m.FailureDomain != 0 {
			domain = strconv.Itoa(m.FailureDomain)
		}
		name := strconv.Itoa(m.Machine)
		if m.IsCM && s.Source != farmsql.StatusOfProcess {
			name += " CM"
		}
		if m.IsDraining {
			name += " draining"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s", name, domain, m.Incarnation, leaseText(m))
		if hasHosts {
			fmt.Fprintf(t, "\t%s", hostOf(m))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// hostOf returns the address, HOST:PORT, at which machines of other hosts reach a machine, or "".
func hostOf(m farmsql.MachineStatus) string {
	transport, hostPort, _ := strings.Cut(m.Address, ":")
	if transport != string(farmsql.TransportTCP) && transport != string(farmsql.TransportVerbs) {
		return ""
	}
	return hostPort
}

// leaseText describes the leases between a machine and the one that answered.
func leaseText(m farmsql.MachineStatus) string {
	switch {
	case m.IsSuspected:
		return "suspected"
	case m.GrantedMS == nil || m.HeldMS == nil:
		return "-"
	case *m.GrantedMS < 0:
		return fmt.Sprintf("ran out %v ago", duration(-*m.GrantedMS))
	}
	return fmt.Sprintf("%v left", duration(*m.GrantedMS))
}

func printRegions(w io.Writer, s farmsql.Status) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "region\tprimary\tbackups\tfilling")
	for _, r := range s.Regions {
		primary := strconv.Itoa(r.Primary)
		if len(r.Away) > 0 {
			primary = "-"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", r.Region, primary, list(r.Backups), list(r.Filling))
	}
	t.Flush()
	for _, r := range s.Regions {
		if r.Move != nil {
			fmt.Fprintf(w, "region %d moves from machine %d to machine %d\n", r.Region, r.Move.From, r.Move.To)
		}
	}
	for _, r := range s.Regions {
		if len(r.Pinned) > 0 {
			fmt.Fprintf(w, "region %d stays at %s, where it was moved by hand\n", r.Region, numbered("machine", r.Pinned))
		}
	}
	for _, m := range s.Machines {
		if m.Obstacle != "" {
			fmt.Fprintf(w, "NOT MOVING: %s\n", m.Obstacle)
		}
	}
	if s.Resize != nil && s.Resize.Obstacle != "" {
		fmt.Fprintf(w, "NOT RESIZING: %s\n", s.Resize.Obstacle)
	}
	if s.MovesAwait != "" {
		fmt.Fprintf(w, "further moves wait for %s\n", s.MovesAwait)
	}
	for _, a := range s.Absences() {
		fmt.Fprintf(w, "UNAVAILABLE %v\n", a)
	}
	if len(s.Lost) > 0 {
		fmt.Fprintf(w, "LOST, with all their replicas: %s\n", list(s.Lost))
	}
}

// list formats numbers; "-" for none.
func list(ns []int) string {
	if len(ns) == 0 {
		return "-"
	}
	return strings.Trim(fmt.Sprint(ns), "[]")
}

func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func validText(valid bool) string {
	if valid {
		return "valid"
	}
	return "NOT valid"
}

func recoveryText(r farmsql.RecoveryStatus) string {
	var parts []string
	if r.IsGoing {
		parts = append(parts, "regions are being activated")
	}
	if r.FillingReplicas > 0 {
		parts = append(parts, fmt.Sprintf("%d replicas are being filled", r.FillingReplicas))
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing to do")
	}
	if r.Transactions != "" {
		parts = append(parts, "transactions of "+r.Transactions)
	}
	return strings.Join(parts, ", ")
}

// printOthers prints a line for each process whose view is not shown.
func printOthers(w io.Writer, answers []statusAnswer, shown statusAnswer) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, a := range answers {
		name := filepath.Base(a.folder)
		switch {
		case a.folder == shown.folder:
		case a.err != nil:
			fmt.Fprintf(t, "%s\t%v\n", name, a.err)
		case a.Unavailable != "":
			fmt.Fprintf(t, "%s\tprocess %d\tconfiguration %d\tNOT AVAILABLE: %s\n", name, a.Process, a.Configuration, a.Unavailable)
		case a.Starting != "":
			fmt.Fprintf(t, "%s\tprocess %d\tconfiguration %d\tstarting: %s\n", name, a.Process, a.Configuration, a.Starting)
		case a.Ended != "":
			fmt.Fprintf(t, "%s\tprocess %d\thas no part any more: %s\n", name, a.Process, a.Ended)
		default:
			r := a.Recovery
			if a.Revision < shown.Revision { // the process of a has not seen the replicas that were filled since
				r.FillingReplicas = shown.Recovery.FillingReplicas
			}
			fmt.Fprintf(t, "%s\tprocess %d\tconfiguration %d\trecovery: %s\n", name, a.Process, a.Configuration, recoveryText(r))
		}
	}
	t.Flush()
	if b.Len() > 0 {
		fmt.Fprintf(w, "\nthe others here\n%s", b.String())
	}
}
