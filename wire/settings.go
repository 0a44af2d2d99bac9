package wire

import "encoding/binary"

// Settings are the limits and features that a side announces in its SETTINGS frame. In the result
// of ParseSettings no value except Features, Compressions, Session, Life and KeyAge exceeds 1<<31
// - 1, so each one fits an int and, as milliseconds, a time.Duration.
type Settings struct {
	MaxFrame     uint64 // longest body, bytes
	MaxCalls     uint64 // open calls on this connection
	MaxMetadata  uint64 // bytes
	MaxStreams   uint64 // open streams on this connection
	StreamWindow uint64 // bytes
	ConnWindow   uint64 // bytes
	MinPing      uint64 // milliseconds
	Features     uint64 // bits; see docs/protocol.md §4

	// Compressions has a bit for each supported compression: bit n%64 of Compressions[n/64] for
	// number n. Every side supports 0, none, whose bit has no meaning.
	Compressions [4]uint64

	Session uint64 // of a client that accepts calls; 0: it does not

	// Life is a random number that a callee chooses when it starts; 0: it does not remember calls
	// by their idempotency keys. KeyAge is the number of milliseconds for which it remembers calls
	// that ran in this life.
	Life, KeyAge uint64
}

// Understands reports whether the compression is supported for a payload.
func (s *Settings) Understands(compression uint8) bool {
	return compression == 0 || s.Compressions[compression/64]&(1<<(compression%64)) != 0
}

// AddCompression announces support of the compression.
func (s *Settings) AddCompression(compression uint8) {
	s.Compressions[compression/64] |= 1 << (compression % 64)
}

// DefaultSettings returns the settings that a side must assume before it has received the peer's.
func DefaultSettings() Settings {
	return Settings{
		MaxFrame: 4<<20 + 64<<10, MaxCalls: 10_000, MaxMetadata: 64 << 10, MaxStreams: 1000,
		StreamWindow: 256 << 10, ConnWindow: 1 << 20, MinPing: 5000,
	}
}

const (
	settingsEntry  = 10
	maxSettings    = 64
	lowestMaxFrame = 1 << 10 // a smaller limit could not carry an error
	highestSetting = 1<<31 - 1
)

// fields returns the settings in the order of their keys, which begin at 1.
func (s *Settings) fields() [15]*uint64 {
	return [15]*uint64{
		&s.MaxFrame, &s.MaxCalls, &s.MaxMetadata, &s.MaxStreams,
		&s.StreamWindow, &s.ConnWindow, &s.MinPing, &s.Features,
		&s.Compressions[0], &s.Compressions[1], &s.Compressions[2], &s.Compressions[3],
		&s.Session, &s.Life, &s.KeyAge,
	}
}

// firstBits is the index, among the fields, of the first setting that holds bits instead of a
// number.
const firstBits = 7

// AppendSettings appends a SETTINGS frame with the entries that differ from the defaults. A peer
// rejects a MaxFrame below 1024.
func AppendSettings(dst []byte, s Settings) []byte {
	start := len(dst)
	dst = AppendHeader(dst, Header{Type: TypeSettings})
	def := DefaultSettings()
	defaults := def.fields()
	for i, v := range s.fields() {
		if *v != *defaults[i] {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(i+1))
			dst = binary.LittleEndian.AppendUint64(dst, *v)
		}
	}
	PutLength(dst[start:], uint32(len(dst)-start-HeaderSize))
	return dst
}

// ParseSettings parses the body of a SETTINGS frame; missing settings have their defaults.
func ParseSettings(body []byte) (Settings, error) {
	s := DefaultSettings()
	if err := CheckSettingsLength(uint32(len(body))); err != nil {
		return s, err
	}
	fields := s.fields()
	for at := 0; at < len(body); at += settingsEntry {
		key := binary.LittleEndian.Uint16(body[at:])
		if hasSetting(body[:at], key) {
			return s, Errorf(BadFrame, "SETTINGS key %d occurs twice", key)
		}
		if key >= 1 && int(key) <= len(fields) {
			*fields[key-1] = binary.LittleEndian.Uint64(body[at+2:])
		}
	}
	for _, v := range fields[:firstBits] {
		*v = min(*v, highestSetting)
	}
	if s.MaxFrame < lowestMaxFrame {
		return s, Errorf(BadFrame, "SETTINGS max_frame of %d bytes is too small, at least %d", s.MaxFrame, lowestMaxFrame)
	}
	return s, nil
}

// CheckSettingsLength returns an error if the body of a SETTINGS frame cannot have the length, so
// that a receiver need not wait for it first: SETTINGS have no checksum, and flipping a single bit
// never results in another valid length.
func CheckSettingsLength(n uint32) error {
	if n%settingsEntry != 0 || n > maxSettings*settingsEntry {
		return Errorf(BadFrame, "SETTINGS frame of %d bytes, want at most %d entries of %d", n, maxSettings, settingsEntry)
	}
	return nil
}

// hasSetting reports whether key is among the entries. With at most 64 of them, a search is
// cheaper than a map and allocates nothing.
func hasSetting(entries []byte, key uint16) bool {
	for ; len(entries) > 0; entries = entries[settingsEntry:] {
		if binary.LittleEndian.Uint16(entries) == key {
			return true
		}
	}
	return false
}
