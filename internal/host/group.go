package host

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// groupFiles returns the files that limit the process's control group and the groups around it.
// unified is their name in version 2 of control groups; legacy is their name in version 1, where each
// controller has its own hierarchy.
func (r Root) groupFiles(controller, unified, legacy string) (files []string) {
	const root = "/sys/fs/cgroup"
	own, err := r.Text("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if parts[1] == "" {
				files = append(files, path.Join(root, group, unified))
			} else if slices.Contains(strings.Split(parts[1], ","), controller) {
				files = append(files, path.Join(root, controller, group, legacy))
			}
			if group == "/" {
				break
			}
		}
	}
	return files
}

// Memory returns how much memory the process may use, and how much the computer has: more, if the
// process's control group has a limit. Both are 0 if that is unknown.
func (r Root) Memory() (limit, computer int64) {
	computer = r.Bytes("/proc/meminfo", "MemTotal")
	limit = computer
	for _, file := range r.groupFiles("memory", "memory.max", "memory.limit_in_bytes") {
		if n, err := r.Number(file); err == nil && n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit, computer
}

// MaySwap reports whether the process's memory may be paged out, if there is swap space: control
// groups of version 2 can forbid it.
func (r Root) MaySwap() bool {
	for _, file := range r.groupFiles("", "memory.swap.max", "") { // no controller of version 1 has the name ""
		if n, err := r.Number(file); err == nil && n == 0 {
			return false
		}
	}
	return true
}

// ProcessorQuota returns how much processor time the process's control group may take for each
// second, in processors; 0 if there is no quota.
func (r Root) ProcessorQuota() (least float64) {
	for _, file := range r.groupFiles("cpu", "cpu.max", "cpu.cfs_quota_us") {
		text, err := r.Text(file)
		if err != nil {
			continue
		}
		quota, period, isUnified := strings.Cut(text, " ")
		if !isUnified {
			period, _ = r.Text(path.Join(path.Dir(file), "cpu.cfs_period_us"))
		}
		q, errQuota := strconv.ParseFloat(quota, 64) // "max", or -1, means none
		p, errPeriod := strconv.ParseFloat(period, 64)
		if errQuota == nil && errPeriod == nil && q > 0 && p > 0 && (least == 0 || q/p < least) {
			least = q / p
		}
	}
	return least
}
