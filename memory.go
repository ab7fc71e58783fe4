package farmsql

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"
)

// ComputerMemory returns how much memory the process may use: that of the computer, or less if its
// control group has a limit. It returns 0 if that is unknown.
func ComputerMemory() Size {
	least := fieldOf("/proc/meminfo", "MemTotal")
	for _, file := range cgroupLimits() {
		if n, err := readNumber(file); err == nil && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return Size(least)
}

// MappedMemory returns how much of the process's memory is mapped files, nearly all of it regions
// and logs. It returns 0 if that is unknown.
func MappedMemory() Size {
	return Size(fieldOf("/proc/self/status", "RssFile") + fieldOf("/proc/self/status", "RssShmem"))
}

// fieldOf returns the number in a line "name: 123 kB", in bytes; 0 if there is none.
func fieldOf(file, name string) int64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == name+":" {
			n, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if it is not a number
			return n << 10
		}
	}
	return 0
}

// cgroupLimits returns the files that limit the memory of the process's control group and of the
// groups around it, for both versions of control groups.
func cgroupLimits() []string {
	const root = "/sys/fs/cgroup"
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if parts[1] == "" {
				files = append(files, path.Join(root, group, "memory.max"))
			} else if strings.Contains(parts[1], "memory") {
				files = append(files, path.Join(root, "memory", group, "memory.limit_in_bytes"))
			}
			if group == "/" {
				break
			}
		}
	}
	return files
}

// readNumber reads a file that holds one number. It fails if the file says "max": there is no limit.
func readNumber(file string) (int64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}
