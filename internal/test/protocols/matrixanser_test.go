package protocols_test

import (
	"context"
	"errors"
	"io"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/compress"
)

// throughAnser calls with an Anser client, which speaks the protocol itself.
func throughAnser(name, scheme string, transport func() anser.DialOption) language {
	dial := func(m *matrixServer, opts ...anser.DialOption) (*anser.Client, error) {
		opts = append(opts, silent, anser.NoSnapshot(), anser.Attempts(1), anser.Codec(new(codec.JSON)))
		if transport != nil {
			opts = append(opts, transport())
		}
		return anser.Dial(scheme+m.address, opts...)
	}
	call := func(ctx context.Context, m *matrixServer, text string, a asked) told {
		var opts []anser.DialOption
		if a.gzip {
			opts = append(opts, anser.Compress(compress.Gzip(), anser.Forced))
		}
		c, err := dial(m, opts...)
		if err != nil {
			return told{message: err.Error()}
		}
		defer c.Close()
		md := anser.Metadata{}
		for k, v := range a.metadata {
			md[k] = v
		}
		var call []anser.CallOption
		if a.key != "" && transport == nil {
			call = append(call, anser.IdempotencyKey(a.key))
		} else if a.key != "" {
			md["idempotency-key"] = a.key
		}
		if ctx = anser.WithMetadata(ctx, md); a.trace {
			ctx = anser.WithTrace(ctx, anser.Trace{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: 1})
		}
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		} else {
			call = append(call, anser.Timeout(0))
		}
		var trailer anser.Metadata
		out, err := anser.Call[Words](ctx, c, "test.Matrix.Say", &Words{text}, append(call, anser.Trailer(&trailer))...)
		if e, ok := errors.AsType[*anser.Error](err); ok {
			return told{code: e.Code.String(), message: e.Message, outcome: e.Outcome.String(), details: len(e.Details) > 0}
		}
		return told{text: out.Text, trailer: trailer["last"]}
	}
	stream := func(ctx context.Context, m *matrixServer, client, server bool) string {
		c, err := dial(m)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		st, err := anser.Open[Words, Words](ctx, c, map[[2]bool]string{
			{false, true}: "test.Matrix.Tell", {true, false}: "test.Matrix.Hear", {true, true}: "test.Matrix.Chat",
		}[[2]bool{client, server}])
		if err != nil {
			return err.Error()
		}
		got := ""
		send := func() { _ = st.Send(&Words{"x"}) }
		receive := func() error {
			out, err := st.Recv()
			if err == nil {
				got += out.Text
			}
			return err
		}
		send()
		if client && server { // the second message follows the answer to the first one
			if err := receive(); err != nil {
				return err.Error()
			}
		}
		if client {
			send()
		}
		st.CloseSend()
		for err == nil {
			err = receive()
		}
		if err != io.EOF {
			return err.Error()
		}
		return got
	}
	return language{name: name, call: call, stream: stream}
}
