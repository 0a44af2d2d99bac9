package bufpool_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/anser-rpc/anser/internal/bufpool"
)

// payload returns the payload of the record with a number, which tells its bytes.
func payload(number uint64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(number) + byte(i)
	}
	return b
}

func TestRecords(t *testing.T) {
	sizes := []int{0, 1, 100, 1000, 1019, 1020, 4000, 16 << 10, 60 << 10, bufpool.Size - 5, bufpool.Size - 4, bufpool.Size, 200 << 10}
	random := rand.New(rand.NewPCG(1, 2))
	var r bufpool.Records
	var batch [][]byte
	var added, cut uint64
	record := make(map[uint64]int)
	for range 60 {
		if !r.Empty() {
			t.Fatal("records are left after Take")
		}
		for range random.IntN(20) {
			size := sizes[random.IntN(len(sizes))]
			p := payload(added, size)
			r.Append(p, byte(added))
			clear(p) // it was copied
			record[added] = size
			added++
		}
		if random.IntN(4) == 0 {
			r.Trim()
		}
		batch = r.Take(batch)
		for _, chunk := range batch {
			for len(chunk) > 0 {
				got, flags := bufpool.Cut(&chunk)
				if want := payload(cut, record[cut]); !bytes.Equal(got, want) || cap(got) != len(got) || flags != byte(cut) {
					t.Fatalf("record %d has %d bytes and the flags %d, want %d bytes", cut, len(got), flags, len(want))
				}
				cut++
			}
		}
		if cut != added {
			t.Fatalf("%d records of %d came", cut, added)
		}
	}
}

// A few small records take little memory, and many of them chunks of the pool's size.
func TestChunksGrow(t *testing.T) {
	var r bufpool.Records
	r.Append(make([]byte, 100), 0)
	if c := r.Take(nil); len(c) != 1 || cap(c[0]) > 1<<10 {
		t.Errorf("%d chunks, the first of %d bytes, for one small record", len(c), cap(c[0]))
	}
	for range 3000 {
		r.Append(make([]byte, 100), 0)
	}
	for i, chunk := range r.Take(nil) {
		if cap(chunk) != bufpool.Size {
			t.Errorf("chunk %d has %d bytes", i, cap(chunk))
		}
	}
}

// While records come and go in equal batches, nothing is allocated.
func TestChunksAreUsedAgain(t *testing.T) {
	var r bufpool.Records
	var batch [][]byte
	message := make([]byte, 10_000)
	binary.LittleEndian.PutUint64(message, 1)
	cycle := func() {
		for range 30 {
			r.Append(message, 0)
		}
		batch = r.Take(batch)
	}
	for range 4 {
		cycle()
	}
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}
