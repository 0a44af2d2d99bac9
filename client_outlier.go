package anser

import (
	"cmp"
	"time"
)

// OutlierDetection configures when a client ejects an instance, for all methods at once. It is an
// option of [Dial]. Without it the defaults apply; a field that is zero means its default.
//
// An instance is ejected when
//   - it refuses Failures attempts in a row because of its own state, not because of overload;
//   - Timeouts attempts in a row time out while nothing at all arrives on their connections, or a
//     ping stays unanswered for 1.5 s while calls wait: the process is stopped, or its machine or
//     the network path to it is gone;
//   - its success rate is more than Deviations standard deviations and at least ten percentage
//     points below the mean of all instances, where at least five instances have had Calls
//     attempts within the window. This is the success rate algorithm of Envoy and gRPC (gRFC A50).
//     The ten points are an addition: where all instances do well, a standard deviation is next
//     to nothing;
//   - with Slow set, its mean latency is at least Slow times the median of all instances, under
//     the same condition.
//
// At most the fraction MaxPart of the reachable instances is ejected at a time, and never the last
// one. Beyond that limit, instances that do not answer pings get no calls either while another
// instance does answer, and idempotent calls that wait for them are made elsewhere. After Time,
// single calls probe an ejected instance: three successes bring it back, and a failure keeps it out
// for Time longer than before, up to MaxTime. An instance that did not answer pings is back as soon
// as it answers, and an instance that was unreachable as soon as it has a new connection.
// [SlowStart] then applies to it.
type OutlierDetection struct {
	Off        bool    // disables ejection
	Failures   int     // refusals in a row; the default is 5
	Timeouts   int     // timeouts in a row; the default is 3
	Deviations float64 // the default is 1.9
	Calls      int     // the default is 100
	// At least 1.5. The default is 0, which is off: with Slow every call is counted, and latencies
	// may differ for good reasons.
	Slow    float64
	Time    time.Duration // the default is 2 s
	MaxTime time.Duration // the default is 8 s
	MaxPart float64       // at most 0.5, the default
}

// DialOption makes an OutlierDetection an option of [Dial].
func (OutlierDetection) DialOption() {}

// set stores the option.
func (j OutlierDetection) set(o *dialOptions) {
	d := defaultEjection()
	d.Off, d.Slow = j.Off, j.Slow
	d.Failures, d.Timeouts, d.Calls = cmp.Or(j.Failures, d.Failures), cmp.Or(j.Timeouts, d.Timeouts), cmp.Or(j.Calls, d.Calls)
	d.Deviations, d.MaxPart = cmp.Or(j.Deviations, d.Deviations), cmp.Or(j.MaxPart, d.MaxPart)
	d.Time, d.MaxTime = cmp.Or(j.Time, d.Time), cmp.Or(j.MaxTime, max(d.MaxTime, j.Time))
	if o.wants(min(d.Failures, d.Timeouts, d.Calls) > 0, "anser.OutlierDetection: want Failures, Timeouts and Calls of at least 1, not %d, %d, %d", d.Failures, d.Timeouts, d.Calls) &&
		o.wants(d.Deviations > 0, "anser.OutlierDetection: Deviations is %v: want a number above 0", d.Deviations) &&
		o.wants(d.Slow == 0 || d.Slow >= 1.5, "anser.OutlierDetection: Slow is %v: want at least 1.5, or 0 for off", d.Slow) &&
		o.wants(d.Time > 0 && d.MaxTime >= d.Time, "anser.OutlierDetection: want a Time above 0 and a MaxTime of at least that, not %v and %v", d.Time, d.MaxTime) &&
		o.wants(d.MaxPart > 0 && d.MaxPart <= 0.5, "anser.OutlierDetection: MaxPart is %v: want more than 0 and at most 0.5", d.MaxPart) {
		o.ejection = d
	}
}

func defaultEjection() OutlierDetection {
	return OutlierDetection{
		Failures: 5, Timeouts: 3, Deviations: 1.9, Calls: 100,
		Time: 2 * time.Second, MaxTime: 8 * time.Second, MaxPart: 0.5,
	}
}
