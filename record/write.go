package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress/zstd"
)

// latest is how long a call waits for others of its block.
const latest = time.Second

// batch collects the calls of a block. One goroutine uses it.
type batch struct {
	head  blockHead
	names int // bytes of the methods in the head, or a little more
	lines []byte
	block []byte // reused
}

// write is the goroutine of the recorder.
func (r *Recorder) write() {
	defer close(r.closed)
	var b batch
	z := zstd.New()
	timer := time.NewTimer(latest)
	timer.Stop()
	flush := func() {
		timer.Stop()
		if b.head.Calls == 0 {
			return
		}
		calls := int64(b.head.Calls)
		block, err := appendBlock(b.block[:0], &b.head, b.lines, z)
		if err == nil {
			err = r.files.write(block)
		}
		r.wrote(calls, len(block), err)
		b = batch{lines: b.lines[:0], block: block[:0]}
		if cap(b.lines) > 4*fullBlock {
			b.lines, b.block = nil, nil
		}
	}
	add := func(e *entry) {
		r.add(&b, e)
		if len(b.lines) >= fullBlock || b.names >= fullNames {
			flush()
		} else if b.head.Calls == 1 {
			timer.Reset(latest)
		}
	}
	for {
		select {
		case e := <-r.queue:
			add(e)
		case <-timer.C:
			flush()
		case <-r.closing:
			for {
				select {
				case e := <-r.queue:
					add(e)
					continue
				default:
				}
				break
			}
			flush()
			if err := r.files.end(); err != nil {
				r.log.Warn("record: the last file cannot be closed", "dir", r.o.Dir, "error", err)
			}
			return
		}
	}
}

// wrote counts the calls of a block, and logs the beginning and the end of troubles.
func (r *Recorder) wrote(calls int64, bytes int, err error) {
	failed := r.files.failed
	r.files.failed = err != nil
	switch {
	case err == nil:
		r.counts.recorded.Add(calls)
		r.counts.bytes.Add(int64(bytes))
		if failed {
			r.log.Info("record: calls are recorded again", "dir", r.o.Dir)
		}
		return
	case !failed:
		r.log.Warn("record: calls cannot be recorded, and are counted as failed until they can", "dir", r.o.Dir, "error", err)
	}
	r.counts.failed.Add(calls)
}

// add adds a call to the block, without its secrets.
func (r *Recorder) add(b *batch, e *entry) {
	defer r.pending.Add(-e.bytes)
	c := &e.call
	if err := r.redact(c, e); err != nil {
		r.count(errUnreadable)
		return
	}
	line, err := appendLine(b.lines, c)
	if err != nil {
		r.count(err)
		return
	}
	b.lines = line
	at := c.At.UnixNano()
	if b.head.Calls == 0 {
		b.head = blockHead{First: at, Last: at, Methods: make(map[string]int)}
	}
	b.head.First, b.head.Last = min(b.head.First, at), max(b.head.Last, at)
	b.head.Calls++
	if b.head.Methods[c.Method] == 0 {
		b.names += maxEscaped*len(c.Method) + perName
	}
	b.head.Methods[c.Method]++
}

// maxLine bounds a call in a file.
const maxLine = maxBody / 2

// appendLine appends a call as a line of JSON.
func appendLine(dst []byte, c *Call) ([]byte, error) {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	switch err := e.Encode(c); {
	case err != nil:
		return nil, errUnreadable
	case b.Len()-len(dst) > maxLine:
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

// redact replaces what is secret in the messages of a call.
func (r *Recorder) redact(c *Call, e *entry) (err error) {
	var paths redactedPaths
	hide := func(text json.RawMessage, of *schema, prefix string) json.RawMessage {
		switch {
		case text == nil || err != nil:
			return text
		case !json.Valid(text):
			err = errors.New("a message is not JSON")
			return nil
		}
		if err = codec.CheckJSON(text); err != nil {
			return nil
		}
		return r.hides.redact(text, of, prefix, &paths)
	}
	c.Request = hide(c.Request, e.request, "request")
	c.Reply = hide(c.Reply, e.reply, "reply")
	for i := range c.Messages {
		m := &c.Messages[i]
		prefix := "received"
		if m.Sent {
			prefix = "sent"
		}
		m.JSON = hide(m.JSON, e.messages[i], prefix)
	}
	c.Redacted = paths.list
	return err
}
