package anser_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
)

// BenchmarkGrowth compares a call in a large system with a call in a small one: with 1,000
// instances, whose list changes ten times a second, with 10,000 methods, of which one or all are
// called, and with 1,000 clients in the process. cpu-ns/op is the processor time of both sides.
// Only a few goroutines call the instances: the calls of a hundred would share writes to one
// instance, and not to 1,000.
func BenchmarkGrowth(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("instances=%d", n), func(b *testing.B) { growInstances(b, n) })
	}
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("methods=%d", n), func(b *testing.B) { growMethods(b, n, 1) })
	}
	b.Run("methods=10000/all", func(b *testing.B) { growMethods(b, 10_000, 10_000) })
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) { growClients(b, n) })
	}
}

// callEcho calls the methods of the clients in turns, from some goroutines per processor.
func callEcho(b *testing.B, clients []*anser.Client, methods []string, goroutines int) {
	var callers atomic.Int64
	payload := make([]byte, 64)
	b.ReportAllocs()
	b.SetParallelism(goroutines)
	b.ResetTimer()
	before := processorTime()
	b.RunParallel(func(pb *testing.PB) {
		var out []byte
		for i := int(callers.Add(1)) * 7919; pb.Next(); i++ {
			c, method := clients[i%len(clients)], methods[i%len(methods)]
			if err := c.Call(context.Background(), method, &payload, &out); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}

// liveHeap returns the bytes of live objects.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// listenEcho serves an echo on n ports.
func listenEcho(b *testing.B, n int) (addresses []string) {
	var first *anser.Server
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		if first == nil {
			first = serveUnary(b, l)
		} else {
			go first.Serve(l)
		}
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

func growInstances(b *testing.B, n int) {
	reg := registry.NewMemory()
	defer reg.Close()
	var all []registry.Instance
	for _, address := range listenEcho(b, n) {
		all = append(all, registry.Instance{Service: "echo", Address: address})
		if err := reg.Register(context.Background(), all[len(all)-1]); err != nil {
			b.Fatal(err)
		}
	}
	heap := liveHeap()
	c, err := anser.Dial("memory:///echo", reg.Scheme("memory"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	callEach(b, []*anser.Client{c}, 20*n)
	started := time.Since(began)
	grown := liveHeap() - heap

	stop := changeList(b, reg, all[0])
	defer stop()
	callEcho(b, []*anser.Client{c}, []string{"Echo.Bytes"}, 1)
	b.ReportMetric(float64(started.Microseconds())/float64(n), "start-µs/instance")
	b.ReportMetric(float64(grown)/1024/float64(n), "KiB/instance")
}

// changeList changes the weight of an instance ten times a second, until it is stopped.
func changeList(b *testing.B, reg *registry.Memory, in registry.Instance) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-ticker.C:
				in.Weight = 100 + i%2
				if err := reg.Register(context.Background(), in); err != nil {
					b.Error(err)
				}
			}
		}
	}()
	return func() { close(ended); <-done }
}

// callEach makes calls one by one, so that every client and instance has its connections.
func callEach(b *testing.B, clients []*anser.Client, n int) {
	payload := make([]byte, 64)
	for i := range n {
		var out []byte
		if err := clients[i%len(clients)].Call(context.Background(), "Echo.Bytes", &payload, &out); err != nil {
			b.Fatal(err)
		}
	}
}

// growMethods serves n methods and calls the first ones in turns.
func growMethods(b *testing.B, n, called int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := serveUnary(b, l)
	methods := make([]string, n)
	for i := range methods {
		methods[i] = fmt.Sprintf("Large%d.Method%d", i/10, i)
		anser.Handle(s, methods[i], func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	}
	c, err := anser.Dial(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	payload := make([]byte, 64)
	for range 2 { // connections
		for _, method := range methods { // the first call of a name announces it
			var out []byte
			if err := c.Call(context.Background(), method, &payload, &out); err != nil {
				b.Fatal(err)
			}
		}
	}
	callEcho(b, []*anser.Client{c}, methods[:called], 50)
}

func growClients(b *testing.B, n int) {
	address := listenEcho(b, 1)[0]
	heap := liveHeap()
	clients := make([]*anser.Client, n)
	for i := range clients {
		c, err := anser.Dial(address)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		clients[i] = c
	}
	callEach(b, clients, 2*n)
	grown := liveHeap() - heap
	callEcho(b, clients, []string{"Echo.Bytes"}, 50)
	b.ReportMetric(float64(grown)/1024/float64(n), "KiB/client")
}
