package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/region"
)

// ErrReplicasDiffer means that a replica differs from its primary, or that objects are torn,
// locked or damaged: the run has no result.
var ErrReplicasDiffer = errors.New("bench: no result, for replicas differ after the run")

// comparePatience bounds the time until machines have restarted together, and their replicas
// have been compared.
const comparePatience = 10 * time.Minute

// compareReplicas compares the replicas of several machines in this process, and reports whether
// there were any to compare. No client may run meanwhile.
func (t *Target) compareReplicas(ctx context.Context) (bool, error) {
	if t.peers != nil || t.Machines() < 2 {
		return false, nil
	}
	return true, differences(t.dbs[0].Check(ctx))
}

// Compare ends the machines and compares all their replicas: it opens their memory in this
// process, as after a power cut. It marks the results, which were measured before, as
// compared. Afterwards a Cluster can only be closed. Over TransportHosts it compares nothing: those machines keep
// the configuration themselves, and once they have ended nobody can read it.
func (c *Cluster) Compare(ctx context.Context, results ...*Result) error {
	if c.Machines() < 2 || c.cfg.Target.Transport == TransportHosts {
		return nil
	}
	if err := c.halt(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, comparePatience)
	defer cancel()
	db, err := farmsql.OpenStopped(ctx, farmsql.Offline{
		Data: []string{c.folder}, Cluster: configurationURL(c.folder), SharedFolder: filepath.Join(c.folder, sharedFolder),
	}, farmsql.Config{})
	if err != nil {
		return fmt.Errorf("bench: no result, for the machines could not be opened again to compare their replicas: %w", err)
	}
	if err := errors.Join(differences(db.Check(ctx)), db.Close()); err != nil {
		return err
	}
	for _, r := range results {
		r.ReplicasCompared = true
	}
	return nil
}

// halt ends all machines at the same moment, so that none continues without the others.
func (c *Cluster) halt() error {
	alive := c.alive()
	var errs []error
	for _, p := range alive {
		_, err := c.Suspend(p.machine)
		errs = append(errs, err)
	}
	for _, p := range alive {
		_, err := c.Kill(p.machine)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("bench: ending the machines: %w", err)
	}
	for _, p := range alive {
		<-p.ended
	}
	return nil
}

// differences turns the problems that a check of all machines has found into an error, except
// leaks: the check does not know the objects that are referred to by values of native hash
// tables.
func differences(r farmsql.Report, err error) error {
	if err != nil {
		return fmt.Errorf("bench: comparing replicas: %w", err)
	}
	leak := fmt.Sprintf(": %v: ", region.Leak)
	found := slices.DeleteFunc(slices.Clone(r.Problems), func(p string) bool { return strings.Contains(p, leak) })
	if len(found) == 0 {
		return nil
	}
	const shown = 3
	return fmt.Errorf("%w: %s: %s", ErrReplicasDiffer, plural(len(found), "problem"), strings.Join(found[:min(shown, len(found))], "; "))
}
