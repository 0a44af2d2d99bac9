package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/rawjson"
	"github.com/anser-rpc/anser/record"
)

// answer is what a target answered to a call.
type answer struct {
	code  string
	reply []byte // JSON; of a stream an array of its messages; nil if there is none
	took  time.Duration
}

// ask sends a call to a target.
func (r *run) ask(ctx context.Context, target int, c *record.Call) answer {
	client := r.o.Targets[target].Client
	_, method := r.method(target, c.Method)
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	md := make(anser.Metadata, len(c.Metadata)+len(r.o.Metadata))
	for _, from := range []map[string]string{c.Metadata, r.o.Metadata} {
		for k, v := range from {
			md.Set(k, v)
		}
	}
	if len(md) > 0 {
		ctx = anser.WithMetadata(ctx, md)
	}
	began := time.Now()
	var reply json.RawMessage
	var err error
	opts := []anser.CallOption{anser.Codec(rawjson.Codec{}), anser.WithFailMode(anser.Failfast)}
	switch {
	case c.Stream:
		reply, err = r.converse(ctx, client, method, c)
	case c.Oneway:
		err = client.Send(ctx, method, &c.Request, opts...)
	default:
		err = client.Call(ctx, method, &c.Request, &reply, opts...)
	}
	a := answer{code: anser.CodeOf(err).String(), took: time.Since(began)}
	if err == nil {
		a.reply = reply
	}
	return a
}

// converse opens a stream, sends the messages of the client at their times, and returns those of
// the server as an array. Of a stream that was not recorded to its end, it receives as many
// messages as were recorded.
func (r *run) converse(ctx context.Context, client *anser.Client, method string, c *record.Call) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var none *json.RawMessage
	st, err := client.OpenDynamic(ctx, method, none, none, nil, anser.Codec(rawjson.Codec{}))
	if err != nil {
		return nil, err
	}
	sent := make(chan struct{})
	defer func() { cancel(); <-sent }()
	go func() {
		defer close(sent)
		r.sendMessages(ctx, st, c)
	}()
	want := 0
	for _, m := range c.Messages {
		if m.Sent {
			want++
		}
	}
	b := bytes.NewBufferString("[")
	for n := 0; !c.Cut || n < want; n++ {
		var msg json.RawMessage
		err := st.Recv(&msg)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if b.Len()+len(msg) > maxStream {
			break // the rest is not compared
		}
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(msg)
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// maxStream bounds the messages of a stream that are compared, in bytes.
const maxStream = 16 << 20

// sendMessages sends the messages of the client.
func (r *run) sendMessages(ctx context.Context, st *anser.DynamicStream, c *record.Call) {
	began := time.Now()
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Sent {
			continue
		}
		if r.o.Speed > 0 && !sleepUntil(ctx, began.Add(scale(m.After, r.o.Speed))) {
			return
		}
		if st.Send(&m.JSON) != nil {
			return // Recv has the reason
		}
	}
	if !c.Cut {
		_ = st.CloseSend() // likewise
	}
}

// recordedAnswer is what the recording has as the answer to a call.
func recordedAnswer(c *record.Call) answer {
	a := answer{code: c.Code, reply: c.Reply, took: c.Took}
	if c.Stream {
		b := bytes.NewBufferString("[")
		for _, m := range c.Messages {
			if !m.Sent {
				continue
			}
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(m.JSON)
		}
		b.WriteByte(']')
		a.reply = b.Bytes()
	}
	return a
}

// scale divides a time by the speed of the replay.
func scale(d time.Duration, speed float64) time.Duration { return time.Duration(float64(d) / speed) }

// sleepUntil waits, and reports whether ctx has not ended.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
