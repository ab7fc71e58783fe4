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

// ErrReplicasDiffer means that a replica is not like its primary, or that objects are torn,
// locked or damaged: the run has no result.
var ErrReplicasDiffer = errors.New("bench: no result, for replicas differ after the run")

// comparePatience is how long machines may take to become one instance again, and their
// replicas to be compared.
const comparePatience = 10 * time.Minute

// compareReplicas compares the replicas of several machines in this process, while no
// client is at work, and reports whether there was anything to compare.
func (t *Target) compareReplicas(ctx context.Context) (bool, error) {
	if t.peers != nil || t.Machines() < 2 {
		return false, nil
	}
	return true, differences(t.dbs[0].Check(ctx))
}

// Compare ends the machines and compares all their replicas, for which their memory is
// opened in this process, as after a power cut. It says so in the results, which were measured
// before. A Cluster can only be closed then.
func (c *Cluster) Compare(ctx context.Context, results ...*Result) error {
	if c.Machines() < 2 {
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

// halt ends all machines at one moment: nobody goes on without another.
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

// differences makes an error of the problems that a check of all machines has found, except
// leaks: the check does not know the objects to which values of native hash tables lead.
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
