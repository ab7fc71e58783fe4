package join

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/cluster/peerport"
	"github.com/farmsql/farmsql/rdma"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An issuing is a cluster's first machine that runs.
type issuing struct {
	t      *testing.T
	folder string
	id     *Identity
	token  Token
	issuer *Issuer
	port   *peerport.Port
	served sync.WaitGroup

	mu      sync.Mutex
	refused []error
}

func newIssuing(t *testing.T, founders int) *issuing {
	t.Helper()
	i := &issuing{t: t, folder: t.TempDir()}
	s := Settings{Replicas: 3, Workers: 2, RegionBytes: 1 << 20, LogBytes: 1 << 16, Founders: founders}
	var err error
	if i.id, i.token, err = Found(i.folder, freeAddress(t), s, time.Hour); err != nil {
		t.Fatal(err)
	}
	i.start()
	t.Cleanup(i.stop)
	return i
}

// start starts the issuer's process, so to speak.
func (i *issuing) start() {
	i.t.Helper()
	i.listen()
	i.serve()
}

// listen is the first half of start: the port is open, and nobody serves it.
func (i *issuing) listen() {
	i.t.Helper()
	id, err := Load(i.folder)
	if err != nil || id == nil {
		i.t.Fatal(id, err)
	}
	config, err := TLS(i.folder)
	if err != nil {
		i.t.Fatal(err)
	}
	refuse := func(_ net.Addr, reason error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.refused = append(i.refused, reason)
	}
	if i.issuer, err = OpenIssuer(i.folder, id, Events{Admitted: func(rdma.MachineID, string) {}, Refused: refuse}); err != nil {
		i.t.Fatal(err)
	}
	if i.port, err = peerport.Open(id.Advertise, config, refuse); err != nil {
		i.t.Fatal(err)
	}
}

func (i *issuing) serve() {
	l := i.port.Listener(peerport.Join)
	i.served.Go(func() { i.issuer.Serve(l) })
}

func (i *issuing) stop() {
	_ = i.port.Close()
	i.served.Wait()
}

// freeAddress returns an address at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// mustAsk lets a machine join.
func (i *issuing) mustAsk(folder, address string) *Identity {
	i.t.Helper()
	id, err := Ask(i.t.Context(), folder, i.token, address, noWait(i.t))
	if err != nil {
		i.t.Fatal(err)
	}
	return id
}

// TestJoin: three machines form a cluster. Each finds its identity again, trusts the others, and
// learns the founders when the last has joined.
func TestJoin(t *testing.T) {
	i := newIssuing(t, 3)
	first, second := t.TempDir(), t.TempDir()
	a := i.mustAsk(first, freeAddress(t))
	if founders, missing := i.issuer.Store(); founders != nil || missing != 1 {
		t.Errorf("with two of three machines the founders are %v, and %d are missing", founders, missing)
	}
	waiting := make(chan string, 10)
	type answer struct {
		founders map[rdma.MachineID]string
		err      error
	}
	answered := make(chan answer, 1)
	config, err := TLS(first)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		founders, err := a.AwaitFounders(t.Context(), config, func(reason string) { waiting <- reason })
		answered <- answer{founders, err}
	}()
	if reason := <-waiting; reason != missingText(1) {
		t.Errorf("the machine waits because %s", reason)
	}
	b := i.mustAsk(second, freeAddress(t))
	got := <-answered
	if got.err != nil || len(got.founders) != 3 || got.founders[0] != i.id.Advertise || got.founders[1] != a.Advertise || got.founders[2] != b.Advertise {
		t.Errorf("founders: %+v", got)
	}
	if a.AskCurrent(t.Context(), config) || a.Current != nil {
		t.Errorf("nobody else keeps the configuration: %s", a.Current)
	}
	i.issuer.Announce([]byte(`{"Version":1}`))
	if !a.AskCurrent(t.Context(), config) || string(a.Current) != `{"Version":1}` {
		t.Errorf("others keep the configuration: %s", a.Current)
	}
	own, err := i.issuer.AwaitFounders(t.Context(), func(string) { t.Error("the issuer waits") })
	if err != nil || len(own) != 3 {
		t.Errorf("founders at the issuer: %v, %v", own, err)
	}
	for n, id := range []*Identity{a, b} {
		folder := []string{first, second}[n]
		if int(id.Machine) != n+1 || id.Cluster != i.id.Cluster || id.Settings != i.id.Settings || id.Issuer != i.id.Advertise || IsIssuer(folder) || !id.IsFounder() {
			t.Errorf("identity %+v", id)
		}
		again, err := Load(folder)
		if err != nil || again.Machine != id.Machine || again.Advertise != id.Advertise || again.Settings != id.Settings {
			t.Errorf("the folder has %+v, %v", again, err)
		}
		if _, err := TLS(folder); err != nil {
			t.Error(err)
		}
	}
}

// TestAuthorize: a machine's certificate is that of no other machine.
func TestAuthorize(t *testing.T) {
	i := newIssuing(t, 2)
	folder := t.TempDir()
	i.mustAsk(folder, freeAddress(t))
	config, err := TLS(folder)
	if err != nil {
		t.Fatal(err)
	}
	shown := tls.ConnectionState{PeerCertificates: []*x509.Certificate{config.Certificates[0].Leaf}}
	if err := Authorize(1, shown); err != nil {
		t.Error(err)
	}
	for _, err := range []error{Authorize(0, shown), Authorize(2, shown), Authorize(1, tls.ConnectionState{})} {
		if err == nil {
			t.Error("a machine may act as another")
		}
	}
}

// TestJoinAgain: a machine that has lost the answer gets the same number, from another process of the
// issuer too; and one that has lost its folder while founders are missing takes its place again.
func TestJoinAgain(t *testing.T) {
	i := newIssuing(t, 3)
	folder, address := t.TempDir(), freeAddress(t)
	i.mustAsk(folder, address)
	i.stop()
	i.start()
	if id := i.mustAsk(folder, address); id.Machine != 1 {
		t.Errorf("the second time it is machine %d", id.Machine)
	}
	address = freeAddress(t)
	if id := i.mustAsk(folder, address); id.Machine != 1 {
		t.Errorf("at another address, while founders are missing, it is machine %d", id.Machine)
	}
	token, err := NewToken(i.folder, 5, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	i.token = token
	if id := i.mustAsk(t.TempDir(), address); id.Machine != 1 {
		t.Errorf("with a new folder, while founders are missing, it is machine %d", id.Machine)
	}
	last := t.TempDir()
	i.mustAsk(last, freeAddress(t)) // the last founder
	if founders, _ := i.issuer.Store(); founders[1] != address {
		t.Errorf("founders %v", founders)
	}
	if _, err := Ask(t.Context(), last, i.token, freeAddress(t), noWait(t)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), errMoved.Error()) {
		t.Errorf("at another address, after the founding: %v", err)
	}
	if id := i.mustAsk(t.TempDir(), address); id.Machine != 3 || id.IsFounder() {
		t.Errorf("with a new folder, after the founding, it is machine %d", id.Machine)
	}
}

// TestTokens: what a token is not good for.
func TestTokens(t *testing.T) {
	i := newIssuing(t, 2)
	other := newIssuing(t, 2)
	expired, err := NewToken(i.folder, 1, -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	guessed := i.token
	guessed.Secret[0]++
	impostor := i.token
	impostor.Address = other.id.Advertise
	silent := i.token
	silent.Address = freeAddress(t)
	used := i.token
	i.mustAsk(t.TempDir(), freeAddress(t))
	for name, c := range map[string]struct {
		token Token
		want  error
		text  string
	}{
		"used up":      {used, ErrRefused, errUsedUp.Error()},
		"expired":      {expired, ErrRefused, errExpired.Error()},
		"guessed":      {guessed, ErrRefused, errSecret.Error()},
		"an impostor":  {impostor, ErrImpostor, ""},
		"nobody there": {silent, ErrUnreachable, silent.Address},
	} {
		folder := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 3*askAgain) // of which only nobody there takes any
		waited := 0
		_, err := Ask(ctx, folder, c.token, freeAddress(t), func(error) { waited++ })
		cancel()
		if waits := c.want == ErrUnreachable; waits != (waited == 1) || !waits && waited != 0 {
			t.Errorf("%s: told %d times that it waits", name, waited)
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if id, err := Load(folder); id != nil || err != nil {
			t.Errorf("%s: the folder has %+v, %v", name, id, err)
		}
	}
	i.stop() // The issuer reports a refusal after it has answered.
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.refused) != 3 {
		t.Errorf("the issuer has refused %v", i.refused)
	}
}

// TestIssuerStarts: a machine that joins waits for an issuer that has yet to listen, and for one that listens and has yet
// to serve, as one does that waits for a majority.
func TestIssuerStarts(t *testing.T) {
	i := newIssuing(t, 3)
	i.stop()
	i.mustWait(i.start)
	i.stop()
	i.listen()
	i.mustWait(i.serve)
}

// mustWait lets a machine join that has to wait until the issuer is ready.
func (i *issuing) mustWait(ready func()) {
	i.t.Helper()
	waited := 0
	_, err := Ask(i.t.Context(), i.t.TempDir(), i.token, freeAddress(i.t), func(reason error) {
		if !errors.Is(reason, ErrUnreachable) {
			i.t.Errorf("it waits because of %v", reason)
		}
		waited++
		ready()
	})
	if err != nil || waited != 1 {
		i.t.Errorf("told %d times that it waits, then %v", waited, err)
	}
}

// noWait returns what Ask calls when it must not wait.
func noWait(t *testing.T) func(error) {
	return func(reason error) { t.Errorf("it waits for the issuer: %v", reason) }
}

// TestUnreachable: the address of a machine must be one at which it can listen and the issuer reaches it.
func TestUnreachable(t *testing.T) {
	i := newIssuing(t, 3)
	if _, err := Ask(t.Context(), t.TempDir(), i.token, "192.0.2.1:7070", noWait(t)); err == nil || !strings.Contains(err.Error(), "--advertise") {
		t.Errorf("an address of another host: %v", err)
	}
	if _, err := Ask(t.Context(), t.TempDir(), i.token, i.id.Advertise, noWait(t)); err == nil {
		t.Error("it has joined at the issuer's address")
	}
	if err := reach(t.Context(), freeAddress(t)); err == nil {
		t.Error("a connection to nobody was made")
	}
	for _, address := range []string{"", "host", ":1", "host:", strings.Repeat("h", 300) + ":1"} {
		if _, err := checkRequest(request{Address: address, Key: i.publicKey()}); err == nil {
			t.Errorf("address %.20q was taken", address)
		}
	}
	if _, err := checkRequest(request{Address: "h:1", Key: []byte("no key")}); err == nil {
		t.Error("garbage was taken for a key")
	}
}

func (i *issuing) publicKey() []byte { return i.issuer.authority.certificate.RawSubjectPublicKeyInfo }

// TestHostileRequests: whatever is sent, the issuer says no and goes on.
func TestHostileRequests(t *testing.T) {
	i := newIssuing(t, 3)
	for name, bytes := range map[string][]byte{
		"nothing":    nil,
		"long":       {0xff, 0xff, 0xff, 0xff},
		"not JSON":   {0, 0, 0, 1, '{'},
		"old":        []byte("\x00\x00\x00\x0c{\"Format\":0}"),
		"a stranger": []byte("\x00\x00\x00\x0c{\"Format\":1}"),
	} {
		c, err := connect(t.Context(), i.id.Advertise, i.token.config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(bytes); err != nil {
			t.Fatal(err)
		}
		if len(bytes) == 0 {
			_ = c.Close()
			continue
		}
		var r reply
		if err := receive(c, &r); err == nil && r.Error == "" {
			t.Errorf("%s: the issuer answers %+v", name, r)
		}
		_ = c.Close()
	}
	i.mustAsk(t.TempDir(), freeAddress(t))
}

// TestAwaitFoundersEnds: a machine that waits for others stops when it is told to.
func TestAwaitFoundersEnds(t *testing.T) {
	i := newIssuing(t, 3)
	folder := t.TempDir()
	id := i.mustAsk(folder, freeAddress(t))
	config, err := TLS(folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := id.AwaitFounders(ctx, config, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("the machine: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if _, err := i.issuer.AwaitFounders(ctx, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("the issuer: %v", err)
	}
	i.stop()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	reason := ""
	_, _ = id.AwaitFounders(ctx, config, func(s string) { reason = s; cancel() })
	if !strings.Contains(reason, ErrUnreachable.Error()) {
		t.Errorf("without the issuer it waits because %s", reason)
	}
	i.start()
}

// TestOneMachine: a cluster of one needs no token.
func TestOneMachine(t *testing.T) {
	i := newIssuing(t, 1)
	if founders, _ := i.issuer.Store(); len(founders) != 1 || i.token != (Token{}) {
		t.Errorf("founders %v, token %v", founders, i.token)
	}
}

func TestToken(t *testing.T) {
	want := Token{Address: "[2001:db8::1]:7070", Authority: sha256.Sum256([]byte("a")), Secret: newSecret()}
	got, err := ParseToken(" " + want.String() + "\n")
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	text := want.String()
	for _, bad := range []string{"", "x", tokenPrefix, tokenPrefix + "%", text[:len(text)-1], text[1:], text + "A", strings.Replace(text, text[20:24], "AAAA", 1),
		Token{Address: "no port"}.String()} {
		if _, err := ParseToken(bad); !errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestNotIssuer: only the folder of the first machine makes tokens.
func TestNotIssuer(t *testing.T) {
	i := newIssuing(t, 2)
	folder := t.TempDir()
	i.mustAsk(folder, freeAddress(t))
	for _, f := range []string{folder, t.TempDir()} {
		if _, err := NewToken(f, 1, time.Hour); !errors.Is(err, ErrNotIssuer) {
			t.Errorf("%v", err)
		}
	}
	if _, err := OpenIssuer(folder, i.id, Events{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a machine without the authority's key issues: %v", err)
	}
}

// TestOtherIssuer: a machine that is given the authority's key and the list of machines admits others.
func TestOtherIssuer(t *testing.T) {
	i := newIssuing(t, 2)
	folder := t.TempDir()
	i.mustAsk(folder, freeAddress(t))
	i.stop()
	for _, name := range []string{authorityKeyFile, machinesFile} {
		b, err := os.ReadFile(filepath.Join(i.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i.folder = folder
	i.start()
	var err error
	if i.token, err = NewToken(folder, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	i.issuer.Reserve(4) // the configuration has machines that the copy lacks
	if id := i.mustAsk(t.TempDir(), freeAddress(t)); id.Machine != 5 {
		t.Errorf("the next machine is %d", id.Machine)
	}
}

// TestStaleIssuer: a list of machines that is older than what the machine knows makes no issuer, nor does
// the key of another cluster.
func TestStaleIssuer(t *testing.T) {
	i := newIssuing(t, 2)
	before, err := os.ReadFile(filepath.Join(i.folder, machinesFile))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	id := i.mustAsk(folder, freeAddress(t))
	id.Store, _ = i.issuer.Store()
	for name, from := range map[string]string{authorityKeyFile: i.folder, machinesFile: ""} {
		b := before
		if from != "" {
			if b, err = os.ReadFile(filepath.Join(from, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenIssuer(folder, id, Events{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "newest list") {
		t.Errorf("an old list: %v", err)
	}
	other := newIssuing(t, 2)
	b, err := os.ReadFile(filepath.Join(other.folder, authorityKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, authorityKeyFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenIssuer(folder, id, Events{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another cluster") {
		t.Errorf("another cluster's key: %v", err)
	}
}

// TestUsedFolders: a folder in which a machine was, or a cluster was begun, takes no new machine.
func TestUsedFolders(t *testing.T) {
	i := newIssuing(t, 3)
	for _, name := range []string{storeFolder, authorityKeyFile} {
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Ask(t.Context(), folder, i.token, freeAddress(t), noWait(t)); err == nil || !strings.Contains(err.Error(), "remove") {
			t.Errorf("a folder with %s: %v", name, err)
		}
	}
	folder := t.TempDir()
	if err := os.Mkdir(StoreFolder(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Found(folder, freeAddress(t), i.id.Settings, time.Hour); !errors.Is(err, ErrDamaged) {
		t.Errorf("a cluster is made in a folder with %s: %v", storeFolder, err)
	}
}

// TestServeEnds: a silent stranger does not hold up the end.
func TestServeEnds(t *testing.T) {
	i := newIssuing(t, 3)
	c, err := connect(t.Context(), i.id.Advertise, i.token.config())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(10 * time.Millisecond) // for Serve to accept it; if it has not, there is less to see
	begin := time.Now()
	i.stop()
	if took := time.Since(begin); took > requestMax/2 {
		t.Errorf("ending took %v", took)
	}
	i.start()
}

// TestDamagedFiles: no file is taken for another, or for one of a later version.
func TestDamagedFiles(t *testing.T) {
	i := newIssuing(t, 2)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(i.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]error{
		"{":                                   ErrDamaged,
		`{"Program":"other","Format":1}`:      ErrDamaged,
		`{"Program":"farmsql","Format":1}`:    ErrDamaged,
		`{"Program":"farmsql","Format":1000}`: ErrNewer,
	} {
		write(identityFile, text)
		if _, err := Load(i.folder); !errors.Is(err, want) {
			t.Errorf("identity %s: %v", text, err)
		}
	}
	for text, want := range map[string]error{
		"{":                                ErrDamaged,
		`{"Program":"farmsql","Format":9}`: ErrNewer,
		`{"Program":"farmsql","Format":1,"Machines":[{"Machine":1},{"Machine":1}]}`: ErrDamaged,
	} {
		write(machinesFile, text)
		if _, err := OpenIssuer(i.folder, i.id, Events{}); !errors.Is(err, want) {
			t.Errorf("machines %s: %v", text, err)
		}
	}
	for _, name := range []string{certificateFile, authorityFile, keyFile} {
		before, err := os.ReadFile(filepath.Join(i.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		write(name, "no PEM")
		if _, err := TLS(i.folder); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		write(name, string(before))
	}
}
