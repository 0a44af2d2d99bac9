package wire_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/anser-rpc/anser/wire"
)

// entry is one key with its value in a SETTINGS frame.
type entry struct {
	key   uint16
	value uint64
}

func settingsBody(entries ...entry) []byte {
	var b []byte
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(b, e.key)
		b = binary.LittleEndian.AppendUint64(b, e.value)
	}
	return b
}

func TestDefaultSettings(t *testing.T) {
	want := wire.Settings{
		MaxFrame: 4_259_840, MaxCalls: 10_000, MaxMetadata: 65_536, MaxStreams: 1000,
		StreamWindow: 262_144, ConnWindow: 1_048_576, MinPing: 5000, Features: 0,
	}
	if got := wire.DefaultSettings(); got != want {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
	if got, err := wire.ParseSettings(nil); err != nil || got != want {
		t.Errorf("an empty frame is read as %+v, %v; want the defaults", got, err)
	}
	if b := body(t, wire.AppendSettings(nil, want), wire.TypeSettings, 0, 0); len(b) != 0 {
		t.Errorf("the defaults are sent as % X, want no entry", b)
	}
}

func TestSettingsRoundTrip(t *testing.T) {
	for _, want := range []wire.Settings{
		{MaxFrame: 1024}, // all others are 0
		{MaxFrame: 1 << 20, MaxCalls: 1, MaxMetadata: 2, MaxStreams: 3, StreamWindow: 4, ConnWindow: 5, MinPing: 6, Features: 1},
		{
			MaxFrame: 1<<31 - 1, MaxCalls: 1<<31 - 1, MaxMetadata: 1<<31 - 1, MaxStreams: 1<<31 - 1,
			StreamWindow: 1<<31 - 1, ConnWindow: 1<<31 - 1, MinPing: 1<<31 - 1, Features: 1<<64 - 1,
			Compressions: [4]uint64{1<<64 - 1, 2, 0, 1 << 63},
		},
	} {
		b := wire.AppendSettings([]byte("kept"), want)
		got, err := wire.ParseSettings(body(t, b[4:], wire.TypeSettings, 0, 0))
		if err != nil || got != want {
			t.Errorf("parsed %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestSettingsKeys(t *testing.T) {
	b := settingsBody(
		entry{8, 8}, entry{7, 7}, entry{6, 6}, entry{5, 5}, entry{4, 4}, entry{3, 3}, entry{2, 2}, entry{1, 1025},
		entry{13, 1<<63 + 9}, entry{12, 12}, entry{11, 11}, entry{10, 10}, entry{9, 9},
		entry{14, 1<<63 + 14}, entry{15, 1<<63 + 15},
		entry{0, 9}, entry{16, 9}, entry{0xFFFF, 1<<64 - 1}, // unknown: ignored
	)
	want := wire.Settings{
		MaxFrame: 1025, MaxCalls: 2, MaxMetadata: 3, MaxStreams: 4, StreamWindow: 5, ConnWindow: 6, MinPing: 7, Features: 8,
		Compressions: [4]uint64{9, 10, 11, 12}, Session: 1<<63 + 9, Life: 1<<63 + 14, KeyAge: 1<<63 + 15,
	}
	if got, err := wire.ParseSettings(b); err != nil || got != want {
		t.Errorf("parsed %+v, %v; want %+v", got, err, want)
	}
}

func TestSettingsCompressions(t *testing.T) {
	s := wire.DefaultSettings()
	for id := range 256 {
		if got, want := s.Understands(uint8(id)), id == 0; got != want {
			t.Errorf("the defaults understand compression %d: %t, want %t", id, got, want)
		}
	}
	for _, id := range []uint8{1, 63, 64, 255} {
		s.AddCompression(id)
	}
	if want := [4]uint64{1<<63 | 2, 1, 0, 1 << 63}; s.Compressions != want {
		t.Errorf("the bits are %x, want %x", s.Compressions, want)
	}
	for id, want := range map[uint8]bool{0: true, 1: true, 2: false, 63: true, 64: true, 65: false, 254: false, 255: true} {
		if got := s.Understands(id); got != want {
			t.Errorf("compression %d is understood: %t, want %t", id, got, want)
		}
	}
}

// Values chosen by a peer must survive a conversion to int32 or to nanoseconds.
func TestSettingsSaturate(t *testing.T) {
	const most = 1<<31 - 1
	for _, v := range []uint64{most - 1, most, most + 1, 1 << 63, 1<<64 - 1} {
		var entries []entry
		for key := range 13 {
			entries = append(entries, entry{uint16(key + 1), v})
		}
		got, err := wire.ParseSettings(settingsBody(entries...))
		w := min(v, most)
		want := wire.Settings{
			MaxFrame: w, MaxCalls: w, MaxMetadata: w, MaxStreams: w, StreamWindow: w, ConnWindow: w, MinPing: w, Features: v,
			Compressions: [4]uint64{v, v, v, v}, Session: v,
		}
		if err != nil || got != want {
			t.Errorf("parsed %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestSettingsLowestMaxFrame(t *testing.T) {
	for _, v := range []uint64{0, 1, 1023, 1024, 1025} {
		_, err := wire.ParseSettings(settingsBody(entry{1, v}))
		if v < 1024 {
			wantReason(t, err, wire.BadFrame)
		} else if err != nil {
			t.Errorf("max_frame %d: %v", v, err)
		}
	}
}

func TestSettingsTwice(t *testing.T) {
	for _, key := range []uint16{0, 1, 8, 9, 0xFFFF} {
		t.Run(fmt.Sprint("key ", key), func(t *testing.T) {
			_, err := wire.ParseSettings(settingsBody(entry{key, 5000}, entry{7, 1}, entry{key, 5000}))
			wantReason(t, err, wire.BadFrame)
		})
	}
}

func TestSettingsCount(t *testing.T) {
	for _, n := range []int{63, 64, 65, 6554} {
		var entries []entry
		for i := range n {
			entries = append(entries, entry{uint16(1000 + i), 0})
		}
		_, err := wire.ParseSettings(settingsBody(entries...))
		if n > 64 {
			wantReason(t, err, wire.BadFrame)
		} else if err != nil {
			t.Errorf("%d entries: %v", n, err)
		}
	}
}

func TestSettingsTruncated(t *testing.T) {
	whole := settingsBody(entry{1, 2048}, entry{2, 1}, entry{8, 1})
	for n := range len(whole) {
		_, err := wire.ParseSettings(whole[:n])
		if n%10 != 0 {
			wantReason(t, err, wire.BadFrame)
		} else if err != nil {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestSettingsAllocations(t *testing.T) {
	whole := settingsBody(entry{1, 2048}, entry{2, 1}, entry{8, 1})
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := wire.ParseSettings(whole); err != nil {
			t.Error(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
