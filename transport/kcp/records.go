package kcp

import (
	"bufio"
	"encoding/binary"
	"io"
	"time"

	"github.com/xtaci/kcp-go/v5"
)

// records frames the byte stream of a session: a record is a length of two bytes, little-endian,
// and that many bytes. The length 0 ends a direction.
type records struct {
	reader
	session *kcp.UDPSession
	onEnd   func()
	ended   chan struct{} // closed by Read at the end of the peer's direction
	said    bool          // the end was sent; owned by the writer
	buf     []byte        // owned by the writer
}

// reader decodes records.
type reader struct {
	r    *bufio.Reader
	left int // remaining bytes of the current record
}

func newRecords(s *kcp.UDPSession, onEnd func()) *records {
	return &records{reader: reader{r: bufio.NewReader(s)}, session: s, onEnd: onEnd, ended: make(chan struct{})}
}

const (
	maxRecord  = 1<<16 - 1
	keptBuffer = 8 << 10 // bytes; an idle connection does not keep a larger one
)

// Read implements asyncconn.Below.
func (r *records) Read(b []byte) (int, error) {
	n, err := r.reader.Read(b)
	if err == io.EOF { // a session has no EOF of its own
		close(r.ended)
	}
	return n, err
}

// Read returns the contents of records, and io.EOF after the last one.
func (r *reader) Read(b []byte) (int, error) {
	if r.left == 0 {
		var head [2]byte
		if _, err := io.ReadFull(r.r, head[:]); err != nil {
			return 0, noEOF(err)
		}
		if r.left = int(binary.LittleEndian.Uint16(head[:])); r.left == 0 {
			return 0, io.EOF
		}
	}
	n, err := r.r.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, noEOF(err)
}

// noEOF distinguishes the end of the session from the end of a direction.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write implements asyncconn.Below.
func (r *records) Write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), maxRecord)
		// In one piece, because KCP sends each piece in packets of its own.
		r.buf = append(binary.LittleEndian.AppendUint16(r.buf[:0], uint16(n)), b[:n]...)
		if _, err := r.session.Write(r.buf); err != nil {
			return err
		}
		b = b[n:]
	}
	if cap(r.buf) > keptBuffer {
		r.buf = nil
	}
	return nil
}

// CloseWrite implements asyncconn.Below.
func (r *records) CloseWrite() error {
	if r.said {
		return nil
	}
	r.said = true
	_, err := r.session.Write([]byte{0, 0})
	return err
}

const (
	// linger is how long a closed session waits for the end of the peer's direction.
	linger = time.Second
	// resend is how long it continues after that, for lost packets.
	resend = 200 * time.Millisecond
)

// Close implements asyncconn.Below.
func (r *records) Close(blocked bool) {
	go func() { // for twice linger at most
		defer r.onEnd()
		defer r.session.Close()
		r.session.SetWriteDeadline(time.Now().Add(linger)) // the peer may have no room, and never have any
		if blocked || r.CloseWrite() != nil {
			return
		}
		wait(r.ended, linger)
		wait(nil, resend)
	}()
}

func wait(c <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	}
}
