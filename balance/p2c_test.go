package balance_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser/balance"
)

// A replay simulates calls against endpoints in virtual time: one call per interval, each of which
// ends after its endpoint's latency.
type replay struct {
	list     []*balance.Endpoint
	picker   balance.Picker
	interval time.Duration
	latency  func(endpoint int, now time.Duration) time.Duration
	fails    func(endpoint int, now time.Duration) bool // may be nil

	now    time.Duration
	flying []attempt // sorted by their ends
}

type attempt struct {
	endpoint   int
	begin, end time.Duration
}

// run simulates calls until the given time and returns the number per endpoint.
func (r *replay) run(until time.Duration) []int {
	counts := make([]int, len(r.list))
	for ; r.now < until; r.now += r.interval {
		for len(r.flying) > 0 && r.flying[0].end <= r.now {
			r.land(r.flying[0])
			r.flying = r.flying[1:]
		}
		i := slices.Index(r.list, r.picker.Pick(nil))
		counts[i]++
		r.list[i].Begin()
		a := attempt{i, r.now, r.now + r.latency(i, r.now)}
		at, _ := slices.BinarySearchFunc(r.flying, a.end, func(b attempt, end time.Duration) int {
			return int(b.end - end)
		})
		r.flying = slices.Insert(r.flying, at, a)
	}
	return counts
}

func (r *replay) land(a attempt) {
	if r.fails != nil && r.fails(a.endpoint, a.begin) {
		r.list[a.endpoint].Fail(int64(a.end))
		return
	}
	r.list[a.endpoint].End(int64(a.end), a.end-a.begin)
}

// play returns a replay of P2C with a call every 100 µs; each takes a millisecond.
func play(weights ...int) *replay {
	list := endpointsWith(weights...)
	return &replay{
		list: list, picker: balance.P2C().Build(list), interval: 100 * time.Microsecond,
		latency: func(int, time.Duration) time.Duration { return time.Millisecond },
	}
}

func share(counts []int, i int) float64 { return float64(counts[i]) / float64(sum(counts)) }

func TestP2CPrefersTheFaster(t *testing.T) {
	list := endpointsWith(1, 1)
	list[0].Observe(0, 10*time.Millisecond)
	list[1].Observe(0, time.Millisecond)
	if got := picks(balance.P2C().Build(list), list, 1000); got[0] != 0 {
		t.Errorf("the slower endpoint is picked %d times of 1000: want never", got[0])
	}
}

func TestP2CPrefersTheLessActive(t *testing.T) {
	list := measured(endpointsWith(1, 1), time.Millisecond)
	begin(list, 3, 1)
	if got := picks(balance.P2C().Build(list), list, 1000); got[0] != 0 {
		t.Errorf("the busier endpoint is picked %d times of 1000: want never", got[0])
	}
}

// cost = latency × (active + 1): a tenth of the latency is worth ten times the attempts.
func TestP2CWeighsLatencyAgainstAttempts(t *testing.T) {
	list := endpointsWith(1, 1)
	list[0].Observe(0, 10*time.Millisecond)
	list[1].Observe(0, time.Millisecond)
	picker := balance.P2C().Build(list)
	begin(list, 0, 8)
	if picker.Pick(nil) != list[1] {
		t.Error("9 × 1 ms is less than 1 × 10 ms")
	}
	begin(list, 0, 2)
	if picker.Pick(nil) != list[0] {
		t.Error("11 × 1 ms is more than 1 × 10 ms")
	}
}

func TestP2CFollowsWeightsWhenIdle(t *testing.T) {
	for _, weights := range [][]int{{98, 2}, {1, 2, 4}, slices.Repeat([]int{100, 300}, 20)} {
		list := endpointsWith(weights...)
		for _, e := range list {
			e.Observe(0, time.Millisecond)
		}
		const n = 100_000
		wantShares(t, picks(balance.P2C().Build(list), list, n), shares(weights), n)
	}
}

func TestP2CFollowsWeightsUnderLoad(t *testing.T) {
	r := play(100, 200, 400, 1)
	r.interval = 10 * time.Microsecond // 100 in flight
	r.run(time.Second)
	counts := r.run(3 * time.Second)
	for i, want := range []float64{100. / 701, 200. / 701, 400. / 701} {
		if got := share(counts, i); got < want*.85 || got > want*1.15 {
			t.Errorf("endpoint %d gets %.3f of the calls: want about %.3f", i, got, want)
		}
	}
	if got := share(counts, 3); got > 3./701 {
		t.Errorf("the canary gets %.4f of the calls: want about %.4f", got, 1./701)
	}
}

func TestP2CSharesEvenlyUnderLoad(t *testing.T) {
	r := play(slices.Repeat([]int{0}, 10)...)
	r.interval = 10 * time.Microsecond
	r.run(time.Second)
	counts := r.run(3 * time.Second)
	for i := range counts {
		if got := share(counts, i); got < .09 || got > .11 {
			t.Errorf("endpoint %d gets %.3f of the calls: want about 0.1", i, got)
		}
	}
}

// A new endpoint gets one attempt, and until that ends its latency is unknown: it gets a second
// one only if it is cheap.
func TestP2CSendsOneAttemptToAnUnmeasuredEndpoint(t *testing.T) {
	list := endpointsWith(1, 1)
	list[0].Observe(int64(time.Minute), time.Millisecond)
	picker := balance.P2C().Build(list)
	if picker.Pick(nil) != list[1] {
		t.Fatal("the endpoint without a sample is not picked first")
	}
	list[1].Begin()
	if got := picks(picker, list, 1000); got[1] != 0 {
		t.Errorf("%d more picks of an endpoint that has not answered: want 0", got[1])
	}
}

func TestP2CUsesANewEndpointAtOnce(t *testing.T) {
	r := play(1, 1, 1)
	r.list[2].Begin() // it takes no part in the first second
	old := r.picker
	r.picker = balance.P2C().Build(r.list[:2])
	r.run(time.Second)
	r.picker = old
	r.list[2].Abort()
	if got := share(r.run(1100*time.Millisecond), 2); got < .25 {
		t.Errorf("the new endpoint gets %.3f of the next 100 ms: want about a third", got)
	}
}

// A server that stops answering keeps the few calls that were in flight at that moment.
func TestP2CLeavesAStalledEndpoint(t *testing.T) {
	r := play(1, 1, 1)
	r.latency = func(endpoint int, now time.Duration) time.Duration {
		if endpoint == 1 && now >= time.Second {
			return time.Hour
		}
		return time.Millisecond
	}
	r.run(time.Second)
	counts := r.run(4 * time.Second) // 30,000 calls
	if counts[1] > 40 {
		t.Errorf("%d calls went to the stalled endpoint: want a few", counts[1])
	}
}

// If a stalled endpoint was by far the fastest, the number of its attempts in flight alone would
// take long to outweigh its latency.
func TestP2CLeavesAStalledEndpointThatWasTheFastest(t *testing.T) {
	r := play(1, 1, 1)
	r.interval = time.Millisecond
	r.latency = func(endpoint int, now time.Duration) time.Duration {
		switch {
		case endpoint != 1:
			return 20 * time.Millisecond
		case now >= time.Second:
			return time.Hour
		}
		return 100 * time.Microsecond
	}
	r.run(time.Second)
	if n := r.run(3 * time.Second)[1]; n > 40 {
		t.Errorf("%d calls went to the stalled endpoint: want a few", n)
	}
}

// When it recovers, it is used again within seconds; until then it has received only a probe now
// and then.
func TestP2CProbesUntilAnEndpointRecovers(t *testing.T) {
	const recovered = 30 * time.Second
	r := play(1, 1, 1)
	r.interval = time.Millisecond
	r.latency = func(endpoint int, now time.Duration) time.Duration {
		if endpoint == 1 && now < recovered {
			return 3 * time.Second // its deadline
		}
		return time.Millisecond
	}
	r.run(5 * time.Second)
	if probes := r.run(recovered)[1]; probes < 4 || probes > 50 {
		t.Errorf("%d calls in 25 s went to the sick endpoint: want one every one to five seconds", probes)
	}
	r.run(recovered + 10*time.Second)
	if got := share(r.run(recovered+12*time.Second), 1); got < .2 {
		t.Errorf("ten seconds after it recovered the endpoint gets %.3f of the calls: want about a third", got)
	}
}

// One slow answer keeps calls away for about a second.
func TestP2CForgivesAPause(t *testing.T) {
	r := play(1, 1)
	r.latency = func(endpoint int, now time.Duration) time.Duration {
		if endpoint == 0 && now > time.Second && now < time.Second+10*time.Millisecond {
			return 100 * time.Millisecond
		}
		return time.Millisecond
	}
	r.run(3500 * time.Millisecond)
	if got := share(r.run(4*time.Second), 0); got < .3 {
		t.Errorf("2.5 s after a pause the endpoint gets %.3f of the calls: want about half", got)
	}
}

// Failing fast must not look like answering fast.
func TestP2CLeavesAnEndpointThatFailsFast(t *testing.T) {
	r := play(1, 1, 1)
	r.latency = func(endpoint int, _ time.Duration) time.Duration {
		if endpoint == 2 {
			return 50 * time.Microsecond
		}
		return time.Millisecond
	}
	r.fails = func(endpoint int, now time.Duration) bool {
		return endpoint == 2 && now > time.Second && now < 5*time.Second
	}
	r.run(1100 * time.Millisecond)
	if got := share(r.run(5*time.Second), 2); got > .005 {
		t.Errorf("%.4f of the calls go to an endpoint that refuses all: want a probe now and then", got)
	}
	r.run(8 * time.Second)
	if got := share(r.run(9*time.Second), 2); got < .5 {
		t.Errorf("it is well and the fastest, and gets %.3f of the calls", got)
	}
}

// Only one of the goroutines that pick at the same time probes.
func TestP2CProbesOnce(t *testing.T) {
	list := endpointsWith(1, 1)
	list[0].Observe(0, time.Second)
	list[1].Observe(int64(2*time.Second), time.Millisecond)
	picker := balance.P2C().Build(list)
	var probes atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				if picker.Pick(nil) == list[0] {
					probes.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if probes.Load() != 1 {
		t.Errorf("%d picks of an endpoint that is due for one probe", probes.Load())
	}
}
