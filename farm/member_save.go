package farm

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// RegionName is the name of a region's replica among a machine's memories.
func RegionName(id region.ID) string { return regionName(id) }

// An Identity is the identity recorded in a machine's memory.
type Identity struct {
	// Cluster is the instance that the memory belongs to; 0 if it has not been part
	// of one yet.
	Cluster uint64
	// Machine is the machine that the memory belongs to, if IsKnown.
	Machine rdma.MachineID
	IsKnown bool
	// Applied is the last configuration that the memory has been in; 0 if none.
	Applied cluster.ID
}

// ReadIdentity reads the identity in a file, which is IdentityFile in the folder of
// a machine that is not open, or its image in a save.
func ReadIdentity(path string) (Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return Identity{}, fmt.Errorf("farm: %w", err)
	}
	defer f.Close() // read only
	var b [identityApplied + 8]byte
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return Identity{}, fmt.Errorf("farm: %s is cut short: %w", path, err)
	}
	id := Identity{Cluster: binary.NativeEndian.Uint64(b[identityCluster:])}
	if was := binary.NativeEndian.Uint64(b[identityMachine:]); was != 0 {
		id.Machine, id.IsKnown = rdma.MachineID(was-1), true
	}
	id.Applied = cluster.ID(binary.NativeEndian.Uint64(b[identityApplied:]))
	return id, nil
}

// RegionsIn returns the regions of which there are replicas in the folder of a machine that is not open, or their
// images in a save.
func RegionsIn(folder string) (ids []region.ID, err error) {
	files, err := filepath.Glob(filepath.Join(folder, regionPrefix+"*"))
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if id, ok := regionOf(name); ok {
			ids = append(ids, id)
		}
	}
	return ids, err
}
