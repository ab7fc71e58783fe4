package doctor

import "fmt"

// The first kernel with statx, which distinguishes a data folder from a copy of it. Everything
// else that farmsql asks of the kernel is older, or optional.
const (
	kernelMajor = 4
	kernelMinor = 11
)

func checkKernel(h Host, _ Plan) Finding {
	release, err := h.Text("/proc/sys/kernel/osrelease")
	if err != nil {
		return notExamined(err.Error())
	}
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return notExamined(fmt.Sprintf("release %q is no number", release))
	}
	if major < kernelMajor || (major == kernelMajor && minor < kernelMinor) {
		return problem(fmt.Sprintf("Linux %s", release),
			"no data folder can be opened: statx is missing",
			fmt.Sprintf("install Linux %d.%d or newer", kernelMajor, kernelMinor))
	}
	return good(fmt.Sprintf("Linux %s (%d.%d or newer is needed)", release, kernelMajor, kernelMinor))
}
