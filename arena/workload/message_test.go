package workload_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/anser-rpc/anser/arena/workload"
)

var update = flag.Bool("update", false, "write the golden files")

// The files are what the programs in other languages compare their bytes with.
func TestMessageHasTheBytesOfTheContract(t *testing.T) {
	for payload, name := range map[int]string{581: "testdata/say581.bin", 64: "testdata/say64.bin"} {
		m, err := workload.NewMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		std, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != payload || !bytes.Equal(got, want) || !bytes.Equal(std, want) {
			t.Errorf("payload %d: %d bytes, the standard library %d, want those of %s", payload, len(got), len(std), name)
		}
	}
}

func TestPayloads(t *testing.T) {
	for _, payload := range []int{64, 100, 1000, 64 << 10, 1 << 20} {
		m, err := workload.NewMessage(payload)
		if err != nil {
			t.Error(err)
		} else if m.SizeVT() != payload {
			t.Errorf("%d bytes instead of %d", m.SizeVT(), payload)
		}
	}
	for _, payload := range []int{0, 63} {
		if _, err := workload.NewMessage(payload); err == nil {
			t.Errorf("payload of %d bytes accepted", payload)
		}
	}
}
