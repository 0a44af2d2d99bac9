package balance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anser-rpc/anser/balance"
)

func mixed(n int) []*balance.Endpoint {
	weights := make([]int, n)
	for i := range weights {
		weights[i] = 50 * (1 + i%4)
	}
	return measured(endpointsWith(weights...), time.Millisecond)
}

func BenchmarkPick(b *testing.B) {
	for _, c := range constructors {
		algorithm := c.make()
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/endpoints=%d", c.name, n), func(b *testing.B) {
				benchmarkPick(b, algorithm.Build(mixed(n)))
			})
		}
	}
}

func benchmarkPick(b *testing.B, picker balance.Picker) {
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		request := &balance.Request{Method: "Arith.Mul"}
		for pb.Next() {
			request.Key++
			picker.Pick(request)
		}
	})
}

// BenchmarkPickBusy measures the algorithms that move on to other endpoints when the first ones
// are busy: a thousand endpoints with 16 attempts each, and one with none.
func BenchmarkPickBusy(b *testing.B) {
	list := mixed(1000)
	for i, e := range list {
		in := *e.Instance()
		in.Latitude, in.Longitude = 10+float64(i)/20, 20 // each in a different place
		e.SetInstance(in)
		for range 16 {
			e.Begin()
		}
	}
	for range 16 {
		list[700].Abort()
	}
	for _, full := range []int{100, 8} {
		b.Run(fmt.Sprintf("closest/full=%d", full), func(b *testing.B) {
			benchmarkPick(b, balance.Closest(balance.Here{Latitude: 10, Longitude: 20, Full: full}).Build(list))
		})
		b.Run(fmt.Sprintf("local_first/full=%d", full), func(b *testing.B) {
			benchmarkPick(b, balance.LocalFirst(balance.Here{Full: full}).Build(list))
		})
	}
	b.Run("consistent_hash", func(b *testing.B) {
		benchmarkPick(b, balance.ConsistentHash().Build(list))
	})
	b.Run("consistent_hash/one_key", func(b *testing.B) {
		picker := balance.ConsistentHash().Build(list)
		own := picker.Pick(keyed(1))
		for range 100 {
			own.Begin()
		}
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			request := keyed(1)
			for pb.Next() {
				picker.Pick(request)
			}
		})
		for range 100 {
			own.Abort()
		}
	})
}

// BenchmarkAttempt measures the cost of balancing per call: pick, begin and end.
func BenchmarkAttempt(b *testing.B) {
	for _, c := range constructors {
		algorithm := c.make()
		b.Run(c.name, func(b *testing.B) {
			picker := algorithm.Build(mixed(100))
			request := &balance.Request{Method: "Arith.Mul"}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				now := int64(time.Second)
				for pb.Next() {
					e := picker.Pick(request)
					e.Begin()
					now += int64(2 * time.Microsecond)
					e.End(now, time.Millisecond)
				}
			})
		})
	}
}

func BenchmarkEndpointBeginEnd(b *testing.B) {
	b.Run("steady", func(b *testing.B) {
		e := endpointsWith(0)[0]
		e.Observe(0, 2*time.Millisecond)
		b.ReportAllocs()
		var now int64
		for b.Loop() {
			e.Begin()
			now += int64(2 * time.Microsecond)
			e.End(now, time.Millisecond)
		}
	})
	b.Run("store", func(b *testing.B) { // every sample changes the average
		e := endpointsWith(0)[0]
		e.Observe(0, time.Hour)
		b.ReportAllocs()
		var now int64
		for b.Loop() {
			e.Begin()
			now += int64(3 * time.Millisecond)
			e.End(now, time.Millisecond)
		}
	})
	b.Run("shared", func(b *testing.B) { // one endpoint for all processors
		e := endpointsWith(0)[0]
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			var now int64
			for pb.Next() {
				e.Begin()
				now += int64(2 * time.Microsecond)
				e.End(now, time.Millisecond)
			}
		})
	})
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range constructors {
		algorithm := c.make()
		for _, n := range []int{3, 1000} {
			b.Run(fmt.Sprintf("%s/endpoints=%d", c.name, n), func(b *testing.B) {
				list := mixed(n)
				for b.Loop() {
					algorithm.Build(list)
				}
			})
		}
	}
	b.Run("weighted/turns=65536", func(b *testing.B) {
		weights := make([]int, 1000)
		for i := range weights {
			weights[i] = 65
		}
		weights[0] = 65 + 536
		list := endpointsWith(weights...)
		for b.Loop() {
			balance.Weighted().Build(list)
		}
	})
}
