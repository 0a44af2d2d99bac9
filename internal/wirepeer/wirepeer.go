// Package wirepeer implements the Anser protocol frame by frame, for tests that need a peer that
// behaves like no library.
package wirepeer

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/anser-rpc/anser/wire"
)

// Peer is one end of a connection. It buffers its input; it is not safe for concurrent use, but
// one goroutine may read while another one writes.
type Peer struct {
	net.Conn
	in []byte

	// Sealed makes Send add checksums to whole frames, and Next verify and remove them.
	Sealed bool
}

// Frame is one received frame.
type Frame struct {
	wire.Header
	Body []byte
}

// New returns a peer at one end of nc that has sent and read nothing yet.
func New(nc net.Conn) *Peer { return &Peer{Conn: nc} }

// Hello returns the preface with the settings, which every side sends first.
func Hello(s wire.Settings) []byte { return wire.AppendSettings(wire.AppendPreface(nil), s) }

// Send writes the frames in one write.
func (p *Peer) Send(frames ...[]byte) error {
	var all []byte
	for _, f := range frames {
		all = append(all, f...)
	}
	if p.Sealed {
		all = Seal(all)
	}
	_, err := p.Write(all)
	return err
}

// Handshake sends the preface with default settings and reads the peer's.
func (p *Peer) Handshake() (wire.Settings, error) {
	if err := p.Send(Hello(wire.DefaultSettings())); err != nil {
		return wire.Settings{}, err
	}
	return p.ReadHello()
}

// SealedHandshake is Handshake with settings that require checksums, which the peer must support.
// All later frames are sealed.
func (p *Peer) SealedHandshake() (wire.Settings, error) {
	if err := p.Send(Hello(Sealing())); err != nil {
		return wire.Settings{}, err
	}
	s, err := p.ReadHello()
	if err == nil && s.Features&wire.FeatureCRC == 0 {
		err = fmt.Errorf("the peer does not support checksums")
	}
	p.Sealed = err == nil
	return s, err
}

// Sealing returns the default settings of a side that requires checksums.
func Sealing() wire.Settings {
	s := wire.DefaultSettings()
	s.Features = wire.FeatureCRC | wire.FeatureCRCWanted
	return s
}

// Seal adds checksums to frames. The last one may be incomplete; it is left unchanged.
func Seal(frames []byte) (sealed []byte) {
	for len(frames) >= wire.HeaderSize {
		end := wire.HeaderSize + uint64(binary.LittleEndian.Uint32(frames))
		if uint64(len(frames)) < end {
			break
		}
		at := len(sealed)
		sealed = wire.AppendChecksum(append(sealed, frames[:end]...), at)
		frames = frames[end:]
	}
	return append(sealed, frames...)
}

// ReadPreface reads the peer's preface.
func (p *Peer) ReadPreface() error {
	preface, err := p.read(wire.PrefaceSize)
	if err != nil {
		return err
	}
	return wire.ParsePreface(preface)
}

// ReadHello reads the peer's preface and settings.
func (p *Peer) ReadHello() (wire.Settings, error) {
	if err := p.ReadPreface(); err != nil {
		return wire.Settings{}, err
	}
	f, err := p.Next()
	if err != nil {
		return wire.Settings{}, err
	}
	if f.Type != wire.TypeSettings {
		return wire.Settings{}, fmt.Errorf("the first frame is %s", f.Type)
	}
	return wire.ParseSettings(f.Body)
}

// Next returns the next frame.
func (p *Peer) Next() (Frame, error) {
	head, err := p.read(wire.HeaderSize)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Header: wire.Header{
		Length: binary.LittleEndian.Uint32(head), Type: wire.Type(head[4]), Flags: wire.Flags(head[5]),
		ID: binary.LittleEndian.Uint64(head[8:]),
	}}
	if f.Body, err = p.read(int(f.Length)); err != nil || !p.Sealed {
		return f, err
	}
	if f.Flags&wire.FlagCRC == 0 {
		return f, fmt.Errorf("a %s frame without a checksum", f.Type)
	}
	f.Flags &^= wire.FlagCRC
	f.Body, err = wire.CheckChecksum(head, f.Body)
	return f, err
}

// NextOf returns the next frame of one of the types, and skips others.
func (p *Peer) NextOf(types ...wire.Type) (Frame, error) {
	for {
		f, err := p.Next()
		if err != nil {
			return f, err
		}
		for _, t := range types {
			if f.Type == t {
				return f, nil
			}
		}
	}
}

// ReadClose reads until the connection ends and returns the reason and text of the CLOSE frame,
// which must be the last one.
func (p *Peer) ReadClose() (wire.Reason, string, error) {
	f, err := p.NextOf(wire.TypeClose)
	if err != nil {
		return 0, "", fmt.Errorf("no CLOSE before the end: %w", err)
	}
	if _, err := p.Next(); err == nil {
		return 0, "", fmt.Errorf("a frame after CLOSE")
	}
	return wire.ParseClose(f.Body)
}

// Rest returns the bytes that were read and belong to frames after the last one. They are no longer
// in the buffer, so that the caller can go on with Conn itself.
func (p *Peer) Rest() []byte {
	rest := p.in
	p.in = nil
	return rest
}

// Fill reads from Conn until n bytes are buffered.
func (p *Peer) Fill(n int) error {
	in, err := p.read(n)
	p.in = append(in, p.in...)
	return err
}

// read returns the next n bytes.
func (p *Peer) read(n int) ([]byte, error) {
	for len(p.in) < n {
		buf := make([]byte, max(n-len(p.in), 4096))
		m, err := p.Conn.Read(buf)
		p.in = append(p.in, buf[:m]...)
		if err != nil && len(p.in) < n {
			if err == io.EOF && len(p.in) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	out := p.in[:n:n]
	p.in = p.in[n:]
	return out, nil
}

// Request is a REQUEST for the method number with the raw codec, of normal priority.
func Request(id uint64, method uint32, payload []byte) []byte {
	return wire.AppendRequest(nil, id, 0, &wire.Request{Method: method, Codec: 1, Priority: 2, Payload: payload})
}

// Reply is a REPLY in the raw codec.
func Reply(id uint64, payload []byte) []byte {
	frame := append(wire.AppendReplyHead(nil, id, 0, 1, 0, nil), payload...)
	wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
	return frame
}

// Parts returns a frame in PARTs, each of which has the next size; the last one has the rest.
func Parts(frame []byte, sizes ...int) (parts [][]byte) {
	id := binary.LittleEndian.Uint64(frame[8:])
	for i := 0; len(frame) > 0; i++ {
		n := len(frame)
		if i < len(sizes) {
			n = sizes[i]
		}
		parts = append(parts, append(wire.AppendPartHead(nil, id, uint32(n)), frame[:n]...))
		frame = frame[n:]
	}
	return parts
}

// Fault is an ERROR.
func Fault(id uint64, e wire.ErrorBody) []byte { return wire.AppendError(nil, id, 0, &e) }
