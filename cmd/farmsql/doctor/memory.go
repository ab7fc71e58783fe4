package doctor

import "fmt"

// checkMemory compares what logs and heaps take with the memory that the process may use. The size of
// the data is not known.
func checkMemory(h Host, p Plan) Finding {
	limit, computer := h.Memory()
	if limit == 0 {
		return notExamined("/proc/meminfo does not say how much memory there is")
	}
	found, processes := size(limit), p.processes()
	if limit < computer {
		found = fmt.Sprintf("%s by the limit of the control group (of %s)", found, size(computer))
		processes = 1 // each service has a control group of its own
	}
	logs := p.logs(p.Machines)
	heap := min(p.HeapLimit(limit, logs), limit) // GOMEMLIMIT may be off
	found += fmt.Sprintf("; %s for logs, %s at most for what statements hold, the rest for data", size(logs), size(heap))
	if processes > 1 {
		found += fmt.Sprintf(", in each of %d processes", processes)
	}
	const mend = "give the process more memory (systemd: MemoryMax=; docker: --memory), or begin the instance with fewer --workers or a smaller --log-size"
	switch n := int64(processes); {
	case n*logs >= limit:
		return problem(found, "on a tmpfs logs alone fill the memory: the kernel ends the process; on a disk they are always being written and read", mend)
	case logs+heap > (limit/5)*4:
		return warning(found, "hardly any memory is left for data beside logs and statements", mend)
	case n*(logs+heap) > limit:
		return warning(found, "together the processes may take more than there is: the kernel ends one", heapShare(limit, logs, n))
	}
	return good(found)
}

// heapShare says how to give each of several processes its share of the memory: of four fifths, without
// the logs of one process, but at least its share of an eighth.
func heapShare(limit, logs, processes int64) string {
	share := max(((limit/5)*4)/processes-logs, (limit/8)/processes)
	return fmt.Sprintf("GOMEMLIMIT=%dMiB in the environment of each", share>>20)
}

// checkHugetlb looks for memory that is set apart for hugetlbfs, which farmsql cannot use.
func checkHugetlb(h Host, _ Plan) Finding {
	n := h.Bytes("/proc/meminfo", "Hugetlb")
	switch {
	case h.Field("/proc/meminfo", "Hugetlb") == "":
		return notExamined("/proc/meminfo does not say how much memory is set apart for hugetlbfs")
	case n == 0:
		return good("no memory is set apart for hugetlbfs, which farmsql does not use")
	}
	return warning(size(n)+" of memory are set apart for hugetlbfs, which farmsql does not use",
		"farmsql cannot use this memory, though it counts it when it sets its limit (GOMEMLIMIT)",
		"sysctl -w vm.nr_hugepages=0, unless another program uses them; farmsql's huge pages are those of a tmpfs")
}

// swappinessMost is the swappiness up to which Linux pages memory out only when there is no other
// way.
const swappinessMost = 1

func checkSwap(h Host, _ Plan) Finding {
	total := h.Bytes("/proc/meminfo", "SwapTotal")
	switch {
	case h.Field("/proc/meminfo", "SwapTotal") == "":
		return notExamined("/proc/meminfo does not say how much swap space there is")
	case total == 0:
		return good("no swap space")
	case !h.MaySwap():
		return good(size(total) + ", which the control group may not use")
	}
	swappiness, err := h.Number("/proc/sys/vm/swappiness")
	if err != nil {
		return notExamined(err.Error())
	}
	found := fmt.Sprintf("%s, of which %s are in use, swappiness %d", size(total), size(total-h.Bytes("/proc/meminfo", "SwapFree")), swappiness)
	if swappiness <= swappinessMost {
		return good(found)
	}
	return warning(found,
		"memory of a tmpfs and of the heap is paged out: statements wait for the disk, and a machine whose workers wait for longer than a lease is evicted (only its lease thread is pinned)",
		fmt.Sprintf("sysctl -w vm.swappiness=%d, or swapoff -a; for one service systemd's MemorySwapMax=0", swappinessMost))
}
