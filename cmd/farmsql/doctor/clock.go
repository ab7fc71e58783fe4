package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// quickClocks are the clock sources that a process reads without a system call.
var quickClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}

func checkClock(h Host, _ Plan) Finding {
	const folder = "/sys/devices/system/clocksource/clocksource0/"
	current, err := h.Text(folder + "current_clocksource")
	if err != nil {
		return notExamined(err.Error())
	}
	if slices.Contains(quickClocks, current) {
		return good(current)
	}
	available, _ := h.Text(folder + "available_clocksource") // without it there is no other to choose
	mend := "boot with tsc=reliable, unless dmesg says that the processors' clocks differ; ask the provider of a virtual machine for tsc or kvm-clock"
	for _, quick := range quickClocks {
		if slices.Contains(strings.Fields(available), quick) {
			mend = fmt.Sprintf("echo %s > %scurrent_clocksource (as root; at boot: clocksource=%s)", quick, folder, quick)
			break
		}
	}
	return warning(current, "each reading of the time is a system call: a lookup reads it to check its lease, and takes several times as long", mend)
}
