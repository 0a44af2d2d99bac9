package wire

import "encoding/binary"

// Settings are what a side accepts, announced in its SETTINGS frame. In what ParseSettings returns no
// value but Features, Compressions, Session, Life and KeyAge is above 1<<31 - 1, so each one fits an int and, as milliseconds,
// a time.Duration.
type Settings struct {
	MaxFrame     uint64 // longest body, bytes
	MaxCalls     uint64 // open calls on this connection
	MaxMetadata  uint64 // bytes
	MaxStreams   uint64 // open streams on this connection
	StreamWindow uint64 // bytes
	ConnWindow   uint64 // bytes
	MinPing      uint64 // milliseconds
	Features     uint64 // bits; see docs/protocol.md §4

	// Compressions has a bit for each compression that is understood: bit n%64 of Compressions[n/64]
	// stands for number n. Everybody understands 0, none, whose bit is of no meaning.
	Compressions [4]uint64

	Session uint64 // of a client that takes calls; 0: it takes none

	// Life is a random number that a callee chooses when it starts; 0: it does not remember calls by their idempotency
	// keys. KeyAge is for how many milliseconds it remembers those that ran in this life.
	Life, KeyAge uint64
}

// Understands reports whether a payload may have the compression.
func (s *Settings) Understands(compression uint8) bool {
	return compression == 0 || s.Compressions[compression/64]&(1<<(compression%64)) != 0
}

// AddCompression announces that the compression is understood.
func (s *Settings) AddCompression(compression uint8) {
	s.Compressions[compression/64] |= 1 << (compression % 64)
}

// DefaultSettings returns what a side must assume until it has received the other's settings.
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

// firstBits is the first of the settings that are bits and not numbers, by its place among the fields.
const firstBits = 7

// AppendSettings appends a SETTINGS frame with the entries that differ from the defaults. A peer
// refuses a MaxFrame below 1024.
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

// ParseSettings reads the body of a SETTINGS frame; what it does not mention has its default.
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

// CheckSettingsLength says whether the body of a SETTINGS frame can have the length, so that a receiver need
// not wait for it first: SETTINGS have no checksum, and no flip of one bit leaves a length that passes.
func CheckSettingsLength(n uint32) error {
	if n%settingsEntry != 0 || n > maxSettings*settingsEntry {
		return Errorf(BadFrame, "SETTINGS frame of %d bytes, want at most %d entries of %d", n, maxSettings, settingsEntry)
	}
	return nil
}

// hasSetting says whether key is among the entries. With at most 64 of them, looking costs less than a
// map and allocates nothing.
func hasSetting(entries []byte, key uint16) bool {
	for ; len(entries) > 0; entries = entries[settingsEntry:] {
		if binary.LittleEndian.Uint16(entries) == key {
			return true
		}
	}
	return false
}
