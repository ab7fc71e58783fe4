package farm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
)

// ErrTorn means that memory has contents that no machine leaves behind, however it ends: it was
// copied while it was in use, or a power failure has destroyed part of it.
var ErrTorn = errors.New("farm: memory is torn")

// tornShown bounds how many faults an error names.
const tornShown = 5

// InspectTrusted is like Inspect, for a folder that can only be opened if it is trusted.
func InspectTrusted(path string, o nvram.Options) error {
	if !o.Trust {
		return nil
	}
	return inspect(context.Background(), path, o, func(f *nvram.Folder) bool { return f.UncheckedError() != nil })
}

// Inspect checks the memory in a machine's folder. It returns ErrTorn, with the places of the faults,
// if the memory cannot be relied on, and the errors of nvram.HoldFolder. A missing folder is not an
// error. Nobody may have the folder open; Inspect changes nothing in it.
func Inspect(ctx context.Context, path string, o nvram.Options) error {
	return inspect(ctx, path, o, func(*nvram.Folder) bool { return true })
}

// inspect opens a folder, and inspects it if wanted returns true.
func inspect(ctx context.Context, path string, o nvram.Options, wanted func(*nvram.Folder) bool) error {
	f, err := nvram.HoldFolder(path, o)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if wanted(f) {
		err = InspectFolder(ctx, f, nil)
	}
	return errors.Join(err, f.Close())
}

// InspectFolder checks every region in a folder that the caller holds, and returns ErrTorn with the
// places of the faults. It reads all objects. Regions for which needed returns true must be complete;
// others may be half made. If needed is nil, all regions may be half made.
func InspectFolder(ctx context.Context, f *nvram.Folder, needed func(region.ID) bool) error {
	names, err := f.Names()
	if err != nil {
		return err
	}
	var torn []string
	for _, name := range names {
		var id region.ID
		if !strings.HasPrefix(name, regionPrefix) {
			continue
		}
		if _, err := fmt.Sscanf(name, regionPrefix+"%d", &id); err != nil {
			continue
		}
		found, err := inspectRegion(ctx, f, id, needed != nil && needed(id))
		if err != nil {
			return err
		}
		torn = append(torn, found...)
	}
	if len(torn) == 0 {
		return nil
	}
	more := ""
	if n := len(torn) - tornShown; n > 0 {
		more = fmt.Sprintf("; and %d more", n)
	}
	return fmt.Errorf("%w: %s: %s%s; restore a save, or have other machines fill this one: what is here cannot be relied on",
		ErrTorn, f.Path(), strings.Join(torn[:min(len(torn), tornShown)], "; "), more)
}

// inspectRegion returns the faults of a region in a machine's folder; none if the region is half made
// and not needed.
func inspectRegion(ctx context.Context, f *nvram.Folder, id region.ID, isNeeded bool) (torn []string, err error) {
	size, err := f.MemorySize(regionName(id))
	if err != nil || (size == 0 && !isNeeded) {
		return nil, err
	}
	if size < region.MinSize {
		return []string{fmt.Sprintf("region %d: has %d bytes", id, size)}, nil
	}
	m, err := f.Map(regionName(id), size)
	if err != nil {
		return nil, err
	}
	if !region.Formatted(m) && !isNeeded {
		return nil, nil
	}
	r, err := region.Open(id, m)
	if err != nil {
		return []string{fmt.Sprintf("region %d: %v", id, err)}, nil
	}
	faults, err := r.Sound(ctx)
	for _, x := range faults {
		torn = append(torn, fmt.Sprintf("region %d: %v", id, x))
	}
	return torn, err
}

// unowned returns ErrTorn if an object is locked at its primary. In c everything has been
// recovered and filled, so no transaction is left that could release the lock. The caller has
// called HoldMoves.
func unowned(c *cluster.Configuration, members []*Member) error {
	var locked []string
	for _, m := range members {
		for _, p := range c.Regions {
			if p.Primary != m.id {
				continue
			}
			for o, h := range m.replica(p.Region).Objects {
				if h.Locked() && len(locked) < tornShown {
					locked = append(locked, fmt.Sprintf("machine %d, region %d: %v: %v", m.id, p.Region, o, h))
				}
			}
		}
	}
	if len(locked) == 0 {
		return nil
	}
	return fmt.Errorf("%w: locked, and no transaction has the lock: %s", ErrTorn, strings.Join(locked, "; "))
}
