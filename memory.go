package farmsql

import "github.com/farmsql/farmsql/internal/host"

// ComputerMemory returns how much memory the process may use: the memory of the computer, or less
// if its control group has a limit. It returns 0 if that is unknown.
func ComputerMemory() Size {
	limit, _ := host.System.Memory()
	return Size(limit)
}

// MappedMemory returns how much of the process's memory is mapped files, nearly all of it regions
// and logs. It returns 0 if that is unknown.
func MappedMemory() Size {
	const file = "/proc/self/status"
	return Size(host.System.Bytes(file, "RssFile") + host.System.Bytes(file, "RssShmem"))
}
