package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/anser-rpc/anser/arena/result"
)

// rounds is how often each direction is measured. The codecs take turns, so that a slow moment of
// the machine does not hit one of them only; the median counts.
const rounds = 3

// measure checks every subject, and measures all of them.
func measure(subjects []subject, each time.Duration) ([]result.Codec, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", (each / rounds).String()); err != nil {
		return nil, err
	}
	var broken []error
	encoded := make([][]byte, len(subjects))
	for i := range subjects {
		var err error
		if encoded[i], err = subjects[i].check(); err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", subjects[i].name, err))
		}
	}
	if err := errors.Join(broken...); err != nil {
		return nil, err
	}
	encodes := make([][]testing.BenchmarkResult, len(subjects))
	decodes := make([][]testing.BenchmarkResult, len(subjects))
	for range rounds {
		for i := range subjects {
			encodes[i] = append(encodes[i], subjects[i].benchmarkEncode())
			decodes[i] = append(decodes[i], subjects[i].benchmarkDecode(encoded[i]))
		}
	}
	var results []result.Codec
	for i := range subjects {
		s := &subjects[i]
		e, d := median(encodes[i]), median(decodes[i])
		results = append(results, result.Codec{
			Name: s.name, Library: library(s.module), Anser: s.anser, Language: "go", Bytes: len(encoded[i]),
			EncodeNS: ns(e), DecodeNS: ns(d),
			EncodeAllocs: e.AllocsPerOp(), DecodeAllocs: d.AllocsPerOp(),
			EncodeBytes: e.AllocedBytesPerOp(), DecodeBytes: d.AllocedBytesPerOp(),
		})
	}
	return results, nil
}

// check returns the encoded message, when it can be decoded again. It goes through both twice:
// what a stream says once, at its begin, is not part of what is measured.
func (s *subject) check() ([]byte, error) {
	var data []byte
	for range 2 {
		var err error
		if data, err = s.encode(nil); err != nil {
			return nil, err
		}
		data = slices.Clone(data)
		m, err := s.decode(data)
		if err != nil {
			return nil, err
		}
		if err := s.same(m); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func (s *subject) benchmarkEncode() testing.BenchmarkResult {
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		var buffer []byte
		for b.Loop() {
			out, err := s.encode(buffer[:0])
			if err != nil {
				b.Fatal(err)
			}
			buffer = out
		}
	})
}

func (s *subject) benchmarkDecode(data []byte) testing.BenchmarkResult {
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func ns(r testing.BenchmarkResult) float64 {
	if r.N == 0 {
		return 0
	}
	return float64(r.T.Nanoseconds()) / float64(r.N)
}

func median(results []testing.BenchmarkResult) testing.BenchmarkResult {
	slices.SortFunc(results, func(a, b testing.BenchmarkResult) int {
		switch x, y := ns(a), ns(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return results[len(results)/2]
}
