package cpp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// programs is the folder of the built programs of testdata.
var programs string

// Without a compiler the tests fail: the peers in C++ are built with the same one.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "arena-cpp-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		for _, name := range []string{"hdr", "program"} {
			compile := exec.Command("g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I..",
				"-o", filepath.Join(programs, name), filepath.Join("testdata", name+".cpp"), "-lz")
			if out, err := compile.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "%v: %v: install g++ and zlib1g-dev\n%s", compile, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// The histogram of the C++ programs is the one that hdrhistogram-go makes of the same values.
func TestHistogramDecodesToItsValues(t *testing.T) {
	const least, most = 1, 60_000_000_000
	random := rand.New(rand.NewPCG(1, 2))
	spread := make([]int64, 20000)
	for i := range spread {
		spread[i] = int64(random.ExpFloat64() * 1e6)
	}
	for name, values := range map[string][]int64{
		"none":             nil,
		"one":              {1},
		"edges of buckets": {1, 2, 2047, 2048, 2049, 4095, 4096, 1 << 32, most - 1, most},
		"out of range":     {0, -5, most + 1, 1 << 62},
		"many of one":      repeated(70000, 1234567),
		"spread":           spread,
	} {
		t.Run(name, func(t *testing.T) {
			want := hdrhistogram.New(least, most, 3)
			var in bytes.Buffer
			for _, v := range values {
				fmt.Fprintln(&in, v)
				if err := want.RecordValue(min(max(v, least), most)); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.Command(filepath.Join(programs, "hdr"))
			run.Stdin = &in
			out, err := run.Output()
			if err != nil {
				t.Fatal(err)
			}
			got, err := hdrhistogram.Decode(out)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equals(want) {
				t.Errorf("%d values, p50 %d, the most %d; want %d, %d, %d", got.TotalCount(), got.ValueAtQuantile(50),
					got.Max(), want.TotalCount(), want.ValueAtQuantile(50), want.Max())
			}
		})
	}
}

func repeated(n int, value int64) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = value
	}
	return values
}
