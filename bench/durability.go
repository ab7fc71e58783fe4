package bench

import "golang.org/x/sys/unix"

// A Durability says what the memory of regions survives.
type Durability string

const (
	// Volatile memory ends with the process.
	Volatile Durability = "volatile anonymous memory"
	// Tmpfs survives the process, not the computer.
	Tmpfs Durability = "tmpfs"
	// DiskFile is a mapped file on a disk: it survives the process, and an orderly
	// shutdown of the computer.
	DiskFile Durability = "disk file"
	// Saved is a tmpfs whose contents are saved to a disk when the database closes in
	// good order.
	Saved Durability = "tmpfs, saved at the end"
	// OfServer is the durability that the server at a DSN is configured for.
	OfServer Durability = "as the server is set up"
	// Unknown is the durability of files whose file system cannot be found out.
	Unknown Durability = "unknown"
)

// durability returns the durability of the target's memory.
func (c *TargetConfig) durability() Durability {
	switch {
	case c.DSN != "":
		return OfServer
	case c.HasProcesses():
		return DurabilityOf(memoryFolder)
	case c.DataFolder == "":
		return Volatile
	}
	data := DurabilityOf(c.DataFolder)
	if data == Tmpfs && c.Saves != "" && DurabilityOf(c.Saves) == DiskFile {
		return Saved
	}
	return data
}

// DurabilityOf returns the durability of memory in files of a folder, without saves. A file system
// that is not in memory counts as a disk.
func DurabilityOf(folder string) Durability {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return Unknown
	}
	if s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC {
		return Tmpfs
	}
	return DiskFile
}
