package accesslog_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/interceptor/accesslog"
)

// The attributes have the names of the conventions, and no other ones.
func TestConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := new(ansertest.Network)
		b := start(t, network.Listen("a:1"), anser.Dialer(network.Dial), accesslog.Conventions(), accesslog.Messages(), accesslog.Slow(2*time.Second))
		trace := anser.WithTrace(t.Context(), anser.Trace{TraceID: [16]byte{0xab}, SpanID: [8]byte{1}})
		for _, test := range []struct {
			what, client string
			ctx          context.Context
		}{
			{"succeed", `"rpc.system.name":"anser","rpc.side":"client","rpc.method":"Log/Do","network.peer.address":"a","network.peer.port":1,"rpc.status_code":"OK","rpc.call.duration":0,"anser.attempt":0,` +
				`"trace_id":"ab000000000000000000000000000000","span_id":"0100000000000000"}`, trace},
			{"refuse", `"rpc.system.name":"anser","rpc.side":"client","rpc.method":"Log/Do","network.peer.address":"a","network.peer.port":1,"rpc.status_code":"PERMISSION_DENIED","error.type":"PERMISSION_DENIED",` +
				`"anser.outcome":"refused","rpc.call.duration":0,"anser.attempt":0,"error.message":"no"}`, t.Context()},
			{"slow", `"rpc.system.name":"anser","rpc.side":"client","rpc.method":"Log/Do","network.peer.address":"a","network.peer.port":1,"rpc.status_code":"OK","rpc.call.duration":3,"anser.attempt":0,"anser.slow":true}`, t.Context()},
		} {
			b.call(test.ctx, test.what)
			if got := b.client.Take(); !strings.HasSuffix(got, test.client+"\n") {
				t.Errorf("%s: %swant the end %s", test.what, got, test.client)
			}
			line := make(map[string]any)
			if err := json.Unmarshal([]byte(b.server.Take()), &line); err != nil || line["rpc.side"] != "server" || line["network.peer.address"] == nil {
				t.Errorf("%s: %v, %v", test.what, line, err)
			}
		}
		in := []byte("secret: succeed")
		b.c.Send(t.Context(), "Log.Do", &in)
		synctest.Wait()
		if got := b.client.Take(); !strings.Contains(got, `"anser.oneway":true`) {
			t.Error(got)
		}
	})
}
