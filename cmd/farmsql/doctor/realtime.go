package doctor

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster/lease"
)

// checkRealtime tries to give the lease thread its priority, and finds the reason if that fails.
func checkRealtime(h Host, p Plan) Finding {
	if !h.HasThread {
		return warning("this build has no lease thread", leaseCosts(lease.LengthCalls), "build farmsql with cgo (CGO_ENABLED=1 and a C compiler)")
	}
	now, err := h.Limit(unix.RLIMIT_RTPRIO)
	if err != nil {
		return notExamined(err.Error())
	}
	runtime, err := h.Number("/proc/sys/kernel/sched_rt_runtime_us")
	if err != nil {
		return notExamined(err.Error())
	}
	rights := fmt.Sprintf("RLIMIT_RTPRIO %s, CAP_SYS_NICE %s, sched_rt_runtime_us %d", limitText(now), held(h.mayNice()), runtime)
	if h.MayRealtime() {
		return good(fmt.Sprintf("a thread got priority %d (%s)", lease.RealtimePriority, rights))
	}
	mend := fmt.Sprintf("LimitRTPRIO=%d in the service's unit; or USER - rtprio %d in /etc/security/limits.conf (not setcap: see the check of processes)", lease.RealtimePriority, lease.RealtimePriority)
	switch {
	case runtime == 0:
		mend = "sysctl -w kernel.sched_rt_runtime_us=950000: with 0 no thread may have real-time priority"
	case h.mayNice() || now >= lease.RealtimePriority:
		mend = "the rights are there, so a container or control group forbids it: docker --cap-add SYS_NICE --ulimit rtprio=98, or write 950000 to the group's cpu.rt_runtime_us"
	}
	return warning(fmt.Sprintf("no thread gets priority %d (%s)", lease.RealtimePriority, rights), normalPriorityCosts(p), mend)
}

// normalPriorityCosts describes the consequences if the lease thread has no real-time priority.
// Leases between hosts have the same length with and without it.
func normalPriorityCosts(p Plan) string {
	if p.IsTCP {
		return "the lease thread waits for a processor as others do: busy machines may be evicted though they are well"
	}
	return leaseCosts(lease.LengthThreadNormal)
}

// leaseCosts describes the consequences of leases of this length.
func leaseCosts(length time.Duration) string {
	return fmt.Sprintf("leases last %v, not %v: machines that hang are noticed that much later, and busy ones may be evicted though they are well", length, lease.LengthThread)
}

func held(isHeld bool) string {
	if isHeld {
		return "held"
	}
	return "not held"
}

// mayNice reports whether the process has the capability CAP_SYS_NICE.
func (h Host) mayNice() bool { return h.has(unix.CAP_SYS_NICE) }

// has reports whether the process has a capability.
func (h Host) has(capability int) bool {
	set, err := strconv.ParseUint(h.Field("/proc/self/status", "CapEff"), 16, 64)
	return err == nil && set&(1<<capability) != 0
}

// checkPinning tries to pin as much memory as the lease thread does.
func checkPinning(h Host, _ Plan) Finding {
	if !h.HasThread {
		return good("this build has no lease thread, and pins nothing")
	}
	now, err := h.Limit(unix.RLIMIT_MEMLOCK)
	if err != nil {
		return notExamined(err.Error())
	}
	found := fmt.Sprintf("the lease thread pins %s at most, RLIMIT_MEMLOCK is %s", size(lease.PinnedBytesMax), memlockText(now))
	if err := h.Pin(lease.PinnedBytesMax); err != nil {
		return warning(fmt.Sprintf("%s: %v", found, err),
			"the lease thread's memory may be paged out: a machine that waits for it is evicted though it is well",
			fmt.Sprintf("LimitMEMLOCK=%d in the service's unit, or ulimit -l %d", 2*lease.PinnedBytesMax, (2*lease.PinnedBytesMax)>>10))
	}
	return good(found)
}

func memlockText(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return size(int64(n))
}
