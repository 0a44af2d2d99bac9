package admin_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// The page lists open streams on both sides, bounded and the oldest first, and none of their
// messages.
func TestOpenStreams(t *testing.T) {
	meter := telemetry.New()
	page, err := admin.New(meter, admin.Name("shop"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(meter.Option())
	const watch anser.ServerStreamMethod[string, string] = "Feed.Watch"
	const chat anser.StreamMethod[string, string] = "Feed.Chat"
	watch.Handle(s, func(ctx context.Context, _ *string, _ anser.Sender[string]) error {
		<-ctx.Done()
		return nil
	})
	chat.Handle(s, func(_ context.Context, st *anser.Stream[string, string]) error {
		for {
			if _, err := st.Recv(); err != nil {
				return err
			}
		}
	})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := anser.Dial(l.Addr().String(), meter.Option())
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(page)
	t.Cleanup(func() {
		page.Close()
		h.Close()
		c.Close()
		s.Close()
		<-served
		http.DefaultClient.CloseIdleConnections()
	})
	at := &site{h, meter, page, c}
	if _, err := watch.Open(t.Context(), c, new("the secret 4711")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		st, err := chat.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		st.Send(new("the secret 4711"))
	}
	var d admin.Document
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		d = at.document(t, "/streams.json?streams=2")
		if v := d.Servers[0].OpenStreams; len(v) == 2 && v[1].Received == 1 && len(v[1].Waits) == 1 || time.Now().After(end) {
			break
		}
	}
	v := &d.Servers[0]
	if v.Streams != 3 || len(v.OpenStreams) != 2 || d.Clients[0].Streams != 3 || len(d.Clients[0].OpenStreams) != 2 {
		t.Fatalf("got %+v and %+v", v, d.Clients)
	}
	if st := v.OpenStreams[0]; st.Method != "Feed.Watch" || st.Kind != "server" || st.Peer == "" || st.Received != 1 || st.SendCredit == 0 || len(st.Waits) != 0 {
		t.Errorf("got %+v", st)
	}
	if st := d.Clients[0].OpenStreams[0]; st.Method != "Feed.Watch" || st.Kind != "server" {
		t.Errorf("the client has %+v", st)
	}
	if st := d.Clients[0].OpenStreams[1]; st.Method != "Feed.Chat" || st.Kind != "both" {
		t.Errorf("the client has %+v", st)
	}
	if st := v.OpenStreams[1]; st.Method != "Feed.Chat" || st.Kind != "both" || fmt.Sprint(st.Waits) != "[a message of the peer]" {
		t.Errorf("got %+v", st)
	}
	for _, accept := range []string{"text/html", "text/plain"} {
		_, body, _ := at.get(t, "/streams?streams=2", "Accept", accept)
		if strings.Contains(body, "not known") {
			t.Errorf("as %s the page does not know the kind of a stream: %s", accept, body)
		}
		for _, want := range []string{"Feed.Watch", "2 of 3, the oldest first", "a message of the peer", "256 KiB"} {
			if !strings.Contains(body, want) {
				t.Errorf("as %s the page has no %q: %s", accept, want, body)
			}
		}
		if strings.Contains(body, "4711") {
			t.Errorf("as %s the page has a message", accept)
		}
	}
	if _, err := anser.Open[string, string](t.Context(), c, string(chat)); err != nil { // by its name
		t.Fatal(err)
	}
	if _, body, _ := at.get(t, "/streams"); !strings.Contains(body, "not known") {
		t.Errorf("the page does not say that the kind is not known: %s", body)
	}
	if d := at.document(t, "/connections.json"); len(d.Servers[0].OpenStreams) != 0 {
		t.Error("a page that lists no streams has them")
	}
}
