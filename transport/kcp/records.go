package kcp

import (
	"bufio"
	"encoding/binary"
	"io"
	"time"

	"github.com/xtaci/kcp-go/v5"
)

// records puts records into the stream of bytes of a session: a length of two bytes, little-endian, and so
// many bytes. The length 0 is the end of a side.
type records struct {
	reader
	session *kcp.UDPSession
	onEnd   func()
	ended   chan struct{} // closed by Read at the end of the other side
	said    bool          // the end was sent; of the one that writes
	buf     []byte        // of the one that writes
}

// reader takes records apart.
type reader struct {
	r    *bufio.Reader
	left int // bytes of the record that is being read
}

func newRecords(s *kcp.UDPSession, onEnd func()) *records {
	return &records{reader: reader{r: bufio.NewReader(s)}, session: s, onEnd: onEnd, ended: make(chan struct{})}
}

const (
	maxRecord  = 1<<16 - 1
	keptBuffer = 8 << 10 // bytes; a larger one is not kept by an idle connection
)

// Read implements asyncconn.Below.
func (r *records) Read(b []byte) (int, error) {
	n, err := r.reader.Read(b)
	if err == io.EOF { // a session has no end of its own
		close(r.ended)
	}
	return n, err
}

// Read returns what is in records, and io.EOF after the last one.
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

// noEOF tells the end of a session apart from that of a side.
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
		// One piece, because KCP puts each into packets of its own.
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
	// linger is how long a closed session waits for the end of the other side.
	linger = time.Second
	// resend is how long it goes on after that, for packets that were lost.
	resend = 200 * time.Millisecond
)

// Close implements asyncconn.Below.
func (r *records) Close(blocked bool) {
	go func() { // for linger at most
		defer r.onEnd()
		defer r.session.Close()
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
