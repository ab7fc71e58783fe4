package main

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/farmsql/farmsql/internal/lists"
)

const (
	// patience bounds each wait for a cluster of hosts whose processors are emulated: it is for what hangs.
	patience = 3 * time.Minute
	// hostLease is the lease time: longer than an emulated host stands still on a busy computer.
	hostLease = 5 * time.Second
	// answerMax is the longest that a client may wait for an answer.
	answerMax = 90 * time.Second
)

// TestClusterOfHosts: three virtual machines, each a host with an RDMA device, are a cluster over verbs that keeps its configuration
// itself. Clients append to lists and read them over SQL at all hosts. A host's link goes down and up again; the switch drops all frames
// of another, whose link stays up; a process is killed and starts again; and the host of the CM loses power, for good. Each time
// the others go on, and what comes back serves again. What clients are told is strictly serializable, and no append is lost.
func TestClusterOfHosts(t *testing.T) {
	if os.Getenv("FARMSQL_VM_HOSTS") == "" {
		t.Skip("minutes: FARMSQL_VM_HOSTS=1 go test -run TestClusterOfHosts ./test/vm")
	}
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // connections break
	c := newHostCluster(t, 3)
	c.startClients()
	c.awaitAnswers(c.hosts...)

	c.befall("link down", c.hosts[2], func(h *host) error { return h.setLink(false) }, func(h *host) error { return h.setLink(true) })
	c.befall("frames dropped", c.hosts[1],
		func(h *host) error { c.network.drop(h.number, true); return nil },
		func(h *host) error { c.network.drop(h.number, false); return nil })
	c.befall("process killed", c.hosts[2], func(h *host) error { return h.order("kill") }, func(h *host) error { return h.order("start") })

	cm := c.awaitWhole()
	begun := time.Now()
	cm.kill()
	c.gone = cm
	c.awaitAnswers(c.others(cm)...)
	t.Logf("host %d (CM) has lost power: answers at the others after %v", cm.number, since(begun))

	c.stopClients()
	c.judge()
}

// A hostCluster is a cluster of hosts, and its clients.
type hostCluster struct {
	t       *testing.T
	network *network
	hosts   []*host
	gone    *host // for good
	lists   *lists.Clients
	stop    context.CancelFunc
	clients sync.WaitGroup
	mu      sync.Mutex
	last    map[int]time.Time // by client: when it last asked something that was acknowledged
	longest time.Duration     // that a client has waited for an answer
	errors  map[string]int    // of clients, by text
}

// newHostCluster starts n hosts, and returns when all serve clients and all regions have all replicas.
func newHostCluster(t *testing.T, n int) *hostCluster {
	t.Helper()
	program := buildProgram(t)
	kernel, err := findKernel("")
	if err != nil {
		t.Fatal(err)
	}
	c := &hostCluster{t: t, last: map[int]time.Time{}, errors: map[string]int{}}
	if c.network, err = newNetwork(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.network.close)
	begun := time.Now()
	c.boot(kernel, program, fmt.Sprintf("--cluster raft: --replicas %d --workers 1 --region-size 16MiB", n))
	token := c.token()
	for len(c.hosts) < n {
		c.boot(kernel, program, "--join "+token)
	}
	for _, h := range c.hosts {
		c.until(fmt.Sprintf("host %d to serve", h.number), func() bool { return strings.Contains(h.output(), "farmsql is ready") })
	}
	c.letIn()
	c.awaitWhole()
	t.Logf("%d hosts serve after %v", n, since(begun))
	return c
}

// buildProgram builds farmsql with verbs.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := t.TempDir() + "/farmsql"
	if out, err := exec.Command("go", "build", "-pgo=off", "-tags", "gms_pure_go,verbs", "-o", program, "../../cmd/farmsql").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// orders is the script of a host: a process of farmsql with the flags %s, which ends and starts again as it is told, and answers how it is.
const orders = `export GOTRACEBACK=all
serve() { ./program serve --data /tmp/data %s & process=$!; }
serve
while read -r order; do
	case $order in
	dump) kill -ABRT $process; wait $process; echo "@@ dumped" ;;
	kill) kill -9 $process; wait $process; echo "@@ killed" ;;
	start) serve ;;
	status) ./program status --data /tmp/data --json; echo "@@ status" ;;
	let-in) ./program sql --address 127.0.0.1:3306 -e "create user root@'%%'" -e "grant all on *.* to root@'%%' with grant option" && echo "@@ let in" ;;
	esac
done </dev/ttyS1`

// boot starts the next host.
func (c *hostCluster) boot(k *kernel, program, more string) {
	c.t.Helper()
	number := len(c.hosts) + 1
	flags := fmt.Sprintf("--listen 0.0.0.0:%d --advertise 10.7.0.%d:7070 --transport verbs --lease %v --unavailable-after 60s --log-size 2MiB %s", clientPort, number, hostLease, more)
	h, err := startHost(number, c.t.TempDir(), k, c.network, program, fmt.Sprintf(orders, flags))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		h.kill()
		if c.t.Failed() {
			c.t.Logf("host %d has said:\n%s\n%s", h.number, h.console(), h.output())
		}
	})
	c.hosts = append(c.hosts, h)
}

var tokenText = regexp.MustCompile(`--join (\S+)`)

// token returns what the first host prints for others to join.
func (c *hostCluster) token() (token string) {
	c.t.Helper()
	c.until("a token", func() bool {
		if found := tokenText.FindStringSubmatch(c.hosts[0].output()); found != nil {
			token = found[1]
		}
		return token != ""
	})
	return token
}

// letIn lets root connect from outside, and makes the lists.
func (c *hostCluster) letIn() {
	c.t.Helper()
	c.ask(c.hosts[0], "let-in", "@@ let in")
	db := c.connect(c.hosts[0], "")
	defer db.Close()
	if _, err := db.Exec("create database d"); err != nil {
		c.t.Fatal(err)
	}
	in := c.connect(c.hosts[0], "d")
	defer in.Close()
	var err error
	if c.lists, err = lists.New(c.t.Context(), in); err != nil {
		c.t.Fatal(err)
	}
}

func (c *hostCluster) connect(h *host, database string) *stdsql.DB {
	c.t.Helper()
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/%s?timeout=10s&readTimeout=%v", h.clients, database, answerMax))
	if err != nil {
		c.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// ask gives an order to a host, and returns what its script says up to an end.
func (c *hostCluster) ask(h *host, order, end string) string {
	c.t.Helper()
	from := len(h.output())
	if err := h.order(order); err != nil {
		c.t.Fatal(err)
	}
	var answer string
	c.until(fmt.Sprintf("%q at host %d", order, h.number), func() (ok bool) {
		answer, _, ok = strings.Cut(h.output()[from:], end)
		return ok
	})
	return answer
}

// A hostStatus is what a host says of the cluster.
type hostStatus struct {
	Machines []struct {
		Address string
		CM      bool
	}
	Regions     []struct{}
	Short       []int
	Unavailable string
}

// cm returns the host of the CM, and how the cluster is as the CM sees it: the others learn later which replicas are complete.
func (c *hostCluster) cm() (*host, hostStatus) {
	c.t.Helper()
	for _, m := range c.status(c.hosts[0]).Machines {
		for _, h := range c.hosts {
			if m.CM && strings.HasSuffix(m.Address, fmt.Sprintf(":10.7.0.%d:7070", h.number)) {
				return h, c.status(h)
			}
		}
	}
	return nil, hostStatus{}
}

// status returns how the cluster is as a host sees it; nothing if the host does not know.
func (c *hostCluster) status(h *host) (s hostStatus) {
	c.t.Helper()
	for line := range strings.Lines(c.ask(h, "status", "@@ status")) {
		if strings.HasPrefix(line, `{"source"`) {
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				c.t.Fatalf("%v: %s", err, line)
			}
		}
	}
	return s
}

// awaitWhole waits until all machines are there and all regions have all replicas, and returns the host of the CM.
func (c *hostCluster) awaitWhole() (cm *host) {
	c.t.Helper()
	c.until("all replicas", func() bool {
		var s hostStatus
		cm, s = c.cm()
		return len(s.Machines) == len(c.hosts) && len(s.Regions) > 0 && len(s.Short) == 0 && s.Unavailable == ""
	})
	return cm
}

// until waits until a condition holds.
func (c *hostCluster) until(what string, holds func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.dump()
			c.t.Fatalf("waited %v for %s; clients were told: %v", patience, what, c.told())
		}
		for _, h := range c.hosts {
			select {
			case <-h.ended:
				if h != c.gone {
					c.t.Fatalf("host %d has ended by itself", h.number)
				}
			default:
			}
		}
	}
}

// dump has each process print its goroutines and end. It waits a while for that: the emulated processors print slowly.
func (c *hostCluster) dump() {
	for _, h := range c.hosts {
		_ = h.order("dump") // the host may be gone
	}
	for _, h := range c.hosts {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && !strings.Contains(h.output(), "@@ dumped"); {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// befall injects a fault, and returns when everything is whole again and all clients get answers.
func (c *hostCluster) befall(name string, victim *host, begin, end func(*host) error) {
	c.t.Helper()
	begun := time.Now()
	if err := begin(victim); err != nil {
		c.t.Fatal(err)
	}
	c.awaitAnswers(c.others(victim)...)
	without := since(begun)
	ended := time.Now()
	if err := end(victim); err != nil {
		c.t.Fatal(err)
	}
	c.awaitAnswers(c.hosts...)
	back := since(ended)
	c.awaitWhole()
	c.t.Logf("host %d: %s: answers at the others after %v; back: answers after %v, whole after %v", victim.number, name, without, back, since(ended))
}

func since(begin time.Time) time.Duration { return time.Since(begin).Round(time.Millisecond) }

// others returns the hosts but for one.
func (c *hostCluster) others(but *host) (others []*host) {
	for _, h := range c.hosts {
		if h != but {
			others = append(others, h)
		}
	}
	return others
}

// clientsEach is the number of clients of a host.
const clientsEach = 2

// startClients starts two clients on each host.
func (c *hostCluster) startClients() {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.t.Cleanup(stop)
	for i, h := range c.hosts {
		c.clients.Go(func() { c.client(ctx, clientsEach*i, h, c.lists.Single) })
		c.clients.Go(func() { c.client(ctx, clientsEach*i+1, h, c.lists.Several) })
	}
}

// client does an operation over and over. Operations that have begun report their outcome.
func (c *hostCluster) client(ctx context.Context, number int, h *host, do func(context.Context, *stdsql.DB, string, *rand.Rand) error) {
	db := c.connect(h, "d")
	defer db.Close()
	rnd := rand.New(rand.NewPCG(19, uint64(number)))
	for ctx.Err() == nil {
		asked := time.Now()
		err := do(context.Background(), db, fmt.Sprintf("host %d", h.number), rnd)
		c.note(number, asked, err)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (c *hostCluster) note(client int, asked time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, time.Since(asked))
	if err == nil {
		c.last[client] = asked
		return
	}
	c.errors[err.Error()]++
	if !mayHappen(err) {
		c.t.Errorf("client %d: %v", client, err)
	}
}

// mayHappen reports whether an error is one that a cluster with faults may give: a conflict (1213), no majority (1047),
// the end of the process (1053), an unknown outcome (1180), or a broken connection.
func mayHappen(err error) bool {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number == 1213 || e.Number == 1047 || e.Number == 1053 || e.Number == 1180
	}
	return !errors.Is(err, lists.ErrText)
}

// told returns what errors clients have got.
func (c *hostCluster) told() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	for text, n := range c.errors {
		fmt.Fprintf(&b, "\n%6d %s", n, text)
	}
	return b.String()
}

// awaitAnswers waits until each client of some hosts has got an answer to something that it has asked from now on.
func (c *hostCluster) awaitAnswers(of ...*host) {
	c.t.Helper()
	begin := time.Now()
	for _, h := range of {
		for i := range clientsEach {
			client := clientsEach*(h.number-1) + i
			c.until(fmt.Sprintf("an answer for client %d, of host %d", client, h.number), func() bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.last[client].After(begin)
			})
		}
	}
}

func (c *hostCluster) stopClients() {
	c.stop()
	c.clients.Wait()
}

// judge reads all lists at the hosts that are left, and checks the history, and that the cluster was one over RDMA.
func (c *hostCluster) judge() {
	c.t.Helper()
	for _, h := range c.others(c.gone) {
		db := c.connect(h, "d")
		var err error
		c.until(fmt.Sprintf("all lists at host %d", h.number), func() bool {
			err = c.lists.ReadAll(c.t.Context(), db, fmt.Sprintf("all at host %d", h.number))
			return err == nil || !mayHappen(err)
		})
		if err != nil {
			c.t.Errorf("host %d: %v", h.number, err)
		}
		_ = db.Close()
	}
	report, err := c.lists.Check()
	if err != nil {
		c.t.Error(err)
	}
	c.t.Log(c.lists.Summary(report))
	c.t.Logf("longest wait of a client: %v; frames of RDMA: %d; clients were told: %s", c.longest.Round(time.Millisecond), c.network.rdmaFrames(), c.told())
	if n := c.network.rdmaFrames(); n < 10*report.Committed {
		c.t.Errorf("only %d frames of RDMA for %d transactions", n, report.Committed)
	}
}
