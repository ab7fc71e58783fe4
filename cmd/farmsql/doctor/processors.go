package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// checkProcessors compares the number of processors with the quota of the control group. If a
// process has used up the quota, the kernel stops all its threads until the next period (100 ms)
// begins.
func checkProcessors(h Host, p Plan) Finding {
	n, quota := h.Processors(), h.ProcessorQuota()
	found := fmt.Sprintf("%d, %d workers a machine", n, p.Workers)
	if quota == 0 || quota >= float64(n) {
		return good(found + ", no quota of the control group below that")
	}
	return warning(fmt.Sprintf("%s, and a quota of %.2f of the control group", found, quota),
		"when the quota is used up, all threads stop for up to 100 ms: statements take that much longer, and a lease (150 ms) may run out",
		"remove the quota (systemd: CPUQuota=; docker: --cpus; Kubernetes: limits.cpu), and pin the process to processors instead (AllowedCPUs=, --cpuset-cpus)")
}

// stolenMost is the share of stolen time, in percent, at which checkStolen warns.
const stolenMost = 2

// checkStolen checks the share of time, since the computer started, for which a processor of this
// computer had work but the hypervisor ran others.
func checkStolen(h Host, _ Plan) Finding {
	stat, err := h.Text("/proc/stat")
	if err != nil {
		return notExamined(err.Error())
	}
	line, _, _ := strings.Cut(stat, "\n")
	stolen, all, ok := stolenOf(line)
	if !ok {
		return notExamined("/proc/stat does not say how much time was stolen")
	}
	percent := 100 * float64(stolen) / float64(max(all, 1))
	found := fmt.Sprintf("%.1f %% of the processors' time since the start", percent)
	if percent < stolenMost {
		return good(found)
	}
	return warning(found, "the hypervisor stops this computer's processors: statements take longer, and leases may run out",
		"give the virtual machine processors of its own (dedicated, not shared or burstable), and at least --lease 500ms until then")
}

// stolenOf returns the stolen and the whole time in the first line of /proc/stat, in ticks:
//
//	cpu  user nice system idle iowait irq softirq steal guest guest_nice
//
// The time of guests is a part of user and nice.
func stolenOf(line string) (stolen, all uint64, ok bool) {
	const steal = 8
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0, 0, false
	}
	for i, field := range fields[1 : steal+1] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		all += n
		if i+1 == steal {
			stolen = n
		}
	}
	return stolen, all, true
}
