package failure

import "math"

// The throughput is back when a window has this share of the former throughput.
const (
	throughputBack = 0.8
	windowMS       = 20
)

// backAfter returns the end of the first window with enough throughput: throughputBack of the
// average of the milliseconds before killed. The window does not begin before earliest. All times are
// milliseconds of the series.
func backAfter(series []uint32, killed, earliest int) (end int, ok bool) {
	if killed <= 0 || killed > len(series) {
		return 0, false
	}
	need := throughputBack * windowMS * mean(series[:killed])
	sum := 0.0 // over the window whose last millisecond is last
	for last := max(0, earliest); last < len(series); last++ {
		sum += float64(series[last])
		if out := last - windowMS; out >= earliest {
			sum -= float64(series[out])
		}
		if last-earliest+1 >= windowMS && sum >= need {
			return last + 1, true
		}
	}
	return 0, false
}

// mean is the average of a series.
func mean(series []uint32) float64 {
	sum := 0.0
	for _, n := range series {
		sum += float64(n)
	}
	return sum / math.Max(1, float64(len(series)))
}

// smooth sums a series over intervals of n milliseconds, and returns the rates per second.
func smooth(series []uint32, n int) (perSecond []float64) {
	for at := 0; at+n <= len(series); at += n {
		perSecond = append(perSecond, 1000*mean(series[at:at+n]))
	}
	return perSecond
}
