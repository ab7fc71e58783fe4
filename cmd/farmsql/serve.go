package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/recovery/membership"
)

// dataFlags determine the place and the layout of a database.
type dataFlags struct {
	Data       string        `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder, created if need be (${default}). On an ordinary disk it survives a killed process, NOT A POWER CUT; use tmpfs, hugetlbfs or DAX for memory that is backed by a battery."`
	Saves      string        `placeholder:"FOLDER" help:"Folder that outlives a power cut: stopping saves everything there, starting restores from there if the data folder is gone, like a tmpfs after a reboot."`
	Trust      bool          `help:"Open a data folder that was in use when the computer went down, or that is a copy of one, unless a check of it, which comes first, finds it torn. Right if the computer was shut down in good order and the folder is on a disk."`
	Machines   *int          `placeholder:"N" help:"FaRM machines to run in this process (1). Fixed when the folder is created, as are the next four, but for what is said of replicas; from then on they need not be given."`
	Replicas   *int          `placeholder:"N" help:"Machines that hold each region, one primary and the rest backups (1). In a cluster it counts only for the machine that begins it: farmsql resize changes it."`
	Workers    *int          `placeholder:"N" help:"Workers per machine (${workers} on this computer)."`
	RegionSize *farmsql.Size `placeholder:"SIZE" help:"Unit of placement and replication, a power of two from 1MiB to 2GiB (2GiB). Space is taken as it fills."`
	LogSize    *farmsql.Size `placeholder:"SIZE" help:"Size of one transaction log; a transaction that writes more than three quarters of it takes memory beside it (32MiB, less where all logs of a machine, machines x workers, took more than 1GiB)."`
}

func (f dataFlags) config() (farmsql.Config, error) {
	c := farmsql.Config{Folder: f.Data, Saves: f.Saves, Trust: f.Trust}
	return c, errors.Join(
		given("--machines", f.Machines, &c.Machines),
		given("--replicas", f.Replicas, &c.Replicas),
		given("--workers", f.Workers, &c.Workers),
		given("--region-size", f.RegionSize, &c.RegionSize),
		given("--log-size", f.LogSize, &c.LogSize),
	)
}

// given copies a flag's value into a setting, if the flag was given. In Config 0 means the default; as a
// flag's value it is a mistake.
func given[T int | farmsql.Size](flag string, value, setting *T) error {
	if value == nil {
		return nil
	}
	if *value == 0 {
		return cli.UsageError(flag + " is 0")
	}
	*setting = *value
	return nil
}

// clusterFlags make the process one machine of a cluster.
type clusterFlags struct {
	Cluster          string        `placeholder:"URL" help:"Be one machine of a cluster whose machines are processes: where they keep the configuration, file://PATH on one host, or zk://HOST:PORT,HOST:PORT/PATH, the same text for all. The first machine creates it, with its --replicas, --workers and sizes. With raft: machines of several hosts keep it themselves: only the first machine gives that, with --advertise, and prints a token for --join."`
	Join             string        `placeholder:"TOKEN" help:"Join, with a token that the first machine of the cluster has printed, or farmsql token there. From then on the folder says of which cluster the machine is, and the token may be left out."`
	MachineID        int           `default:"0" placeholder:"N" help:"With --cluster: this machine's number, from 0. Its memory is in machine-N in the data folder."`
	FailureDomain    int           `default:"0" placeholder:"N" help:"With --cluster: machines with one number fail together, and hold no two replicas of a region. 0 is a domain of the machine's own."`
	Transport        string        `placeholder:"NAME" help:"With --cluster: how machines reach each other: shm, shared memory of this host, tcp, between hosts, or verbs, RDMA cards between hosts, in a program built for them (shm). The same for all machines."`
	RDMADevice       string        `name:"rdma-device" placeholder:"NAME" help:"With --transport verbs: the RDMA device, as ibv_devices lists it (the first)."`
	RDMAPort         int           `name:"rdma-port" placeholder:"N" help:"With --transport verbs: the device's port (1)."`
	RDMAGID          string        `name:"rdma-gid" placeholder:"N" help:"With --transport verbs: the index of the port's GID (the first of RoCE v2 with an IPv4 address, or else the first)."`
	SharedFolder     string        `placeholder:"FOLDER" help:"With --transport shm: where the machines meet, best on a tmpfs (a folder in /dev/shm that is named after --cluster)."`
	Advertise        string        `placeholder:"HOST:PORT" help:"With --transport tcp or verbs, or --cluster raft:, where this machine listens for the others, TCP and, for tcp, UDP, and where they reach it. With --join it may be left out: port ${peerPort} of the address towards the first machine."`
	PeerCA           string        `name:"peer-ca" placeholder:"FILE" help:"With --transport tcp or verbs: certificates (PEM) of the authorities that certify the machines. Whoever has a certificate of theirs can read and change all data: they should certify nobody else."`
	PeerCert         string        `placeholder:"FILE" help:"With --transport tcp or verbs: this machine's certificate (PEM), for the HOST of --advertise, to be used as a server's and as a client's; with --peer-key. Only with a loopback address may the three be left out."`
	PeerKey          string        `placeholder:"FILE" help:"Key (PEM) of the certificate."`
	UnavailableAfter time.Duration `placeholder:"DURATION" help:"With --cluster: how long statements wait for a majority of the machines, or for data whose machines are away, before they fail with error 1047 (10 lease times, at least 3s)."`
	Lease            time.Duration `placeholder:"DURATION" help:"With --cluster: how long a machine may be silent before the others go on without it. All machines should have the same; the default is what can be kept punctually here, and is logged."`
	RecoveryPace     farmsql.Pace  `placeholder:"PACE" help:"With --cluster: how hard the machine works to fill replicas that others have lost: slow, 4 MB a second that transactions hardly notice, or aggressive, as fast as it can, which is what it always does where one replica is left (slow)."`
}

func (f clusterFlags) apply(c *farmsql.Config) (err error) {
	c.Cluster, c.Join, c.MachineID, c.FailureDomain = f.Cluster, f.Join, f.MachineID, f.FailureDomain
	c.Transport, c.SharedFolder, c.Advertise = farmsql.Transport(f.Transport), f.SharedFolder, f.Advertise
	c.RDMA = farmsql.RDMA{Device: f.RDMADevice, Port: f.RDMAPort, GID: f.RDMAGID}
	c.LeaseTime, c.RecoveryPace, c.UnavailableAfter = f.Lease, f.RecoveryPace, f.UnavailableAfter
	c.PeerTLS, err = peerTLS(f.PeerCA, f.PeerCert, f.PeerKey, f.Advertise)
	return err
}

// logFlags determine what is logged to stderr.
type logFlags struct {
	LogLevel  slog.Level `default:"info" placeholder:"LEVEL" help:"Log this and above: debug, info, warn or error (${default})."`
	LogFormat string     `default:"text" enum:"text,json" placeholder:"FORMAT" help:"Format of the log on stderr: text or json (${default})."`
}

func (f logFlags) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: f.LogLevel}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func defaults() map[string]string {
	return map[string]string{"workers": fmt.Sprint(farmsql.DefaultWorkers()), "peerPort": join.DefaultPort}
}

type serveCommand struct {
	dataFlags
	clusterFlags
	logFlags
	Listen          string        `default:"127.0.0.1:3306" placeholder:"HOST:PORT" help:"Address for MySQL clients (${default}). root has no password and may connect from this computer only; create users before you listen wider."`
	HTTP            string        `name:"http" placeholder:"HOST:PORT" help:"Address for load balancers and supervisors (none): /health is 200 while the process lives, /health?ready=1 is 503, with the reason, unless it serves clients: while it starts or stops, or has no majority."`
	ResultBuffer    farmsql.Size  `default:"64MiB" placeholder:"SIZE" help:"Rows one statement may return: they are held back until its transaction is validated (${default})."`
	StatementMemory *farmsql.Size `placeholder:"SIZE" help:"Memory that one statement may hold: rows that it sorts, groups, joins or keeps back, what its transaction has read, and the session's variables; beyond it the statement fails (an eighth of GOMEMLIMIT, which is set by what regions leave of the computer's memory). All statements together may hold half of GOMEMLIMIT."`
	MaxPacket       farmsql.Size  `default:"64MiB" placeholder:"SIZE" help:"Largest request of a client, max_allowed_packet (${default})."`
	MaxConnections  int           `default:"1000" placeholder:"N" help:"Clients that may be connected (${default}), one more for a user with SUPER, and as many that have not logged in yet."`
	SecureFilePriv  string        `placeholder:"FOLDER" help:"Folder in which users with the FILE privilege may read and write with LOAD_FILE, LOAD DATA INFILE and SELECT INTO OUTFILE (none: nobody may)."`
	TLSCert         string        `placeholder:"FILE" help:"Certificate for clients that use TLS; with --tls-key (one that signs itself, made at the first start in the data folder: server-cert.pem, server-key.pem)."`
	TLSKey          string        `placeholder:"FILE" help:"Key of the certificate."`
	RequireTLS      bool          `help:"Refuse clients that do not use TLS."`
	NoTLS           bool          `name:"no-tls" help:"Do not offer TLS: passwords are scrambled, everything else can be read on its way."`

	certificate *ownCertificate // nil if a certificate was given, or without TLS
	health      *health
}

// Help is shown by serve --help.
func (serveCommand) Help() string {
	return durability + `

When it is ready, it prints one line with the address to connect to. SIGTERM, SIGINT, SIGQUIT and
SIGPWR close the database in an orderly way, and so does SIGHUP when the server's terminal is closed:
running statements finish, the folder is marked as complete, and with --saves everything is saved.
With --cluster the process is one of several machines, which replicate and go on without a machine
that fails; it serves once there are enough of them. A machine that was evicted because it was silent
for too long comes back as a new machine. farmsql demo shows this; farmsql status shows the state of
the machines.`
}

// Run serves until a signal asks it to stop.
func (s *serveCommand) Run(std cli.Streams) error {
	cfg, err := s.config(std.Err)
	if err != nil {
		return err
	}
	// Listen first: if the address is in use, the folder must not be touched.
	l, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return listenError(s.Listen, err)
	}
	address := l.Addr().String()
	var endHealth func() error
	if s.health, endHealth, err = serveHealth(s.HTTP, cfg.Logger); err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { _ = endHealth() }()
	cfg.Invite = func(token string, machines int) {
		fmt.Fprint(std.Out, invitation(token, machines, farmsql.FirstTokenLife))
	}
	defer limitMemory(cfg.Logger)()
	ctx, stop := untilSignal(cfg.Logger, std.Err)
	defer stop()
	defer context.AfterFunc(ctx, func() { s.health.stopping.Store(true) })()
	cfg.Shutdown = func() {
		cfg.Logger.Info("asked to stop by a client")
		stop()
	}
	var last error // the reason for which the previous life ended
	for isFirst := true; ; isFirst = false {
		ended, err := s.live(ctx, cfg, l, std.Out)
		if !isFirst && isPassing(err) { // the machine has been open before: it tries again until it can open
			ended, err = err, nil
			pause(ctx, comingBackPause)
		}
		if ended == nil || err != nil {
			return err
		}
		s.logComingBack(cfg.Logger, ended, last)
		last = ended
		if l, err = net.Listen("tcp", address); err != nil {
			return listenError(address, err)
		}
	}
}

// comingBackPause is the time between two attempts to open the machine again while a
// passing error prevents it.
const comingBackPause = time.Second

// isPassing reports whether a machine that cannot open for this reason may succeed later: the store
// of the configuration does not answer, or the file system is full.
func isPassing(err error) bool {
	return errors.Is(err, cluster.ErrUnreachable) || errors.Is(err, nvram.ErrNoSpace)
}

// logComingBack logs why the machine opens again, if the reason differs from the last
// one; a full file system is logged only once.
func (s *serveCommand) logComingBack(log *slog.Logger, reason, last error) {
	switch {
	case !awaitsRoom(reason):
		log.Warn("coming back", "reason", reason)
	case !awaitsRoom(last):
		log.Warn("cannot come back before there is room: make some on the file system of the data folder; it is tried again until then",
			"folder", s.Data, "reason", reason)
	}
}

// awaitsRoom reports whether a machine could not open for lack of space. If a machine has ended its
// life for lack of space, it first begins another life, which may need less.
func awaitsRoom(reason error) bool {
	return errors.Is(reason, nvram.ErrNoSpace) && !errors.Is(reason, membership.ErrRestart)
}

// pause sleeps for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// live serves until ctx is done or, in a cluster, until the machine is evicted; it then
// returns the reason, and another life may follow. It closes l.
func (s *serveCommand) live(ctx context.Context, cfg farmsql.Config, l net.Listener, out io.Writer) (ended, err error) {
	log := cfg.Logger
	var starting opening
	cfg.Opening = func(o *farmsql.Operator) (end func() error, err error) {
		starting.operator.Store(o)
		s.health.operator.Store(o)
		if s.certificate != nil {
			if err := s.certificate.load(o.Folder(), s.Listen, log); err != nil {
				return nil, err
			}
		}
		return serveOperator(o.Folder(), o)
	}
	stopRefusing := starting.turnAway(l, cmp.Or(s.UnavailableAfter, openPatience), log)
	db, err := farmsql.OpenContext(ctx, cfg)
	stopRefusing()
	if err != nil {
		err = errors.Join(err, l.Close())
		if ctx.Err() != nil { // a signal came while it was starting
			log.Info("stopped", "opening", err)
			return nil, nil
		}
		if errors.Is(err, membership.ErrEvicted) || errors.Is(err, membership.ErrRestart) { // the machine was evicted while it was starting
			return err, nil
		}
		return nil, err
	}
	defer context.AfterFunc(ctx, db.Hurry)()
	s.health.open.Store(true)
	defer s.health.open.Store(false)
	fmt.Fprintln(out, readyLine(l.Addr()))
	log.Info("ready", "address", l.Addr().String(), "folder", s.Data, "machines", db.Machines())
	serving, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case reason := <-db.Ended():
			end(reason)
		case <-serving.Done():
		}
	}()
	err = db.Serve(serving, l)
	end(nil)
	if ctx.Err() != nil {
		log.Info("stopping")
	} else if cause := context.Cause(serving); err == nil && !errors.Is(cause, context.Canceled) {
		// The database has ended this life. Close disconnects clients; it cannot reach the other machines
		// any more.
		if err := db.Close(); err != nil {
			log.Info("closed", "error", err)
		}
		return cause, nil
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	log.Info("stopped")
	return nil, nil
}

func (s *serveCommand) config(stderr io.Writer) (farmsql.Config, error) {
	cfg, err := s.dataFlags.config()
	if err != nil {
		return cfg, err
	}
	for _, f := range []struct {
		flag string
		zero bool
	}{{"--result-buffer", s.ResultBuffer == 0}, {"--max-packet", s.MaxPacket == 0}, {"--max-connections", s.MaxConnections == 0}} {
		if f.zero {
			return cfg, cli.UsageError(f.flag + " is 0")
		}
	}
	cfg.ResultBuffer, cfg.MaxPacket, cfg.MaxConnections = s.ResultBuffer, s.MaxPacket, s.MaxConnections
	if err := given("--statement-memory", s.StatementMemory, &cfg.StatementMemory); err != nil {
		return cfg, err
	}
	cfg.RequireTLS, cfg.SecureFilePriv = s.RequireTLS, s.SecureFilePriv
	if err := s.clusterFlags.apply(&cfg); err != nil {
		return cfg, err
	}
	cfg.Logger = s.logger(stderr)
	if cfg.MaxConnections, err = connectionsFor(s.MaxConnections, layoutOf(cfg), cfg.Logger); err != nil {
		return cfg, err
	}
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		return cfg, listenFlagError(s.Listen)
	}
	if cfg.TLS, err = s.tls(cfg.Logger); err != nil {
		return cfg, err
	}
	if err := cfg.Validate(); err != nil {
		return cfg, cli.UsageError(err.Error())
	}
	return cfg, nil
}

// tls returns the server's TLS configuration; nil without TLS.
func (s *serveCommand) tls(log *slog.Logger) (*tls.Config, error) {
	switch {
	case (s.TLSCert == "") != (s.TLSKey == ""):
		return nil, cli.UsageError("--tls-cert and --tls-key belong together")
	case s.NoTLS && (s.TLSCert != "" || s.RequireTLS):
		return nil, cli.UsageError("--no-tls does not go with --tls-cert or --require-tls")
	case s.NoTLS:
		return nil, nil
	case s.TLSCert != "":
		return loadTLS(s.TLSCert, s.TLSKey, log)
	}
	s.certificate = new(ownCertificate)
	return s.certificate.config(), nil
}

// readyLine returns the line with the command that connects to the server at an address.
func readyLine(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return fmt.Sprintf("farmsql is ready on %s", a)
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("farmsql is ready on %s: mariadb -h %s -P %s -u root, or farmsql sql --address %s",
		a, host, port, net.JoinHostPort(host, port))
}

func listenFlagError(address string) error {
	return cli.UsageError(fmt.Sprintf("--listen is %q: must be HOST:PORT", address))
}

func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use: another server listens there (choose another --listen)", address)
	}
	return fmt.Errorf("cannot listen on %s: %w", address, err)
}
