package protocols_test

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/protocols"
)

type writerKey struct{}

// A handler in front of the calls sees every HTTP request, changes some, and runs others as
// calls, with their checks.
func TestBefore(t *testing.T) {
	before := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/page"):
				r = r.WithContext(context.WithValue(r.Context(), writerKey{}, w))
				if err := protocols.RunRequest(r, "pages/Serve"); err != nil {
					protocols.WriteError(w, err)
				}
			case strings.HasPrefix(r.URL.Path, "/math/"):
				u := *r.URL
				u.Path = strings.TrimPrefix(u.Path, "/math")
				r = r.Clone(r.Context())
				r.URL = &u
				fallthrough
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
	s, addr := serveWith(t, protocols.All(protocols.Before(before)), anser.Authenticate(anser.AuthenticatorFunc(func(_ context.Context, l *anser.AuthRequest) (*anser.Identity, error) {
		return &anser.Identity{Subject: string(l.Data)}, nil
	})), anser.Authorize(deny("mallory")))
	none := reflect.TypeFor[anser.None]()
	if err := s.HandleDynamic([]anser.DynamicMethod{{
		Name: "pages/Serve", Request: none, Reply: none, Foreign: true,
		Handle: func(ctx context.Context, _ any) (any, error) {
			r := protocols.RequestFrom(ctx)
			io.WriteString(ctx.Value(writerKey{}).(http.ResponseWriter), anser.IdentityFrom(ctx).Subject+" "+r.URL.Path+" "+protocols.HostFrom(ctx))
			return new(anser.None), nil
		},
	}}); err != nil {
		t.Fatal(err)
	}
	for version, c := range clients(t) {
		for _, one := range []struct {
			path, token string
			status      int
			want        string
		}{
			{"/page/1", "alice", 200, "alice /page/1 " + addr},
			{"/page/1", "mallory", 403, "permission_denied"},
			{"/page/1", "", 401, "unauthenticated"},
			{"/math/Arith.Mul", "alice", 200, `{"C":56}`},
			{"/Arith.Mul", "alice", 200, `{"C":56}`},
		} {
			var headers []string
			if one.token != "" {
				headers = []string{"Authorization", "Bearer " + one.token}
			}
			resp := send(t, c, "http://"+addr+one.path, `{"A":7,"B":8}`, headers...)
			if got := text(t, resp); resp.StatusCode != one.status || !strings.Contains(got, one.want) {
				t.Errorf("%s: %s of %s: %d %s", version, one.path, one.token, resp.StatusCode, got)
			}
		}
	}
	if n := s.Stats().Methods["pages/Serve"].Calls; n != 2 {
		t.Errorf("%d requests have run as calls, want 2", n)
	}
}

// deny allows everything but one caller.
type deny string

func (d deny) Allows(id *anser.Identity, _ string) bool { return id.Subject != string(d) }

func (deny) Version() uint64 { return 0 }

// The host is that of the request, over gRPC too; origins may be decided while the server runs.
func TestHostsAndOrigins(t *testing.T) {
	allowed := "https://one.example"
	s, addr := serveWith(t, protocols.All(protocols.AllowOriginsIf(func(origin string) bool { return origin == allowed })))
	var host string
	anser.Handle(s, "Host.Ask", func(ctx context.Context, _ *anser.None) (*anser.None, error) {
		host = protocols.HostFrom(ctx)
		return new(anser.None), nil
	})
	c, err := anser.Dial("grpc://"+addr, protocols.GRPC())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		host = ""
		err := c.Call(t.Context(), "Host.Ask", &codec.Encoded{Codec: codec.ProtobufID}, new(codec.Encoded), anser.Codec(codec.Forwarding(codec.ProtobufID, "protobuf")))
		if err != nil || host != addr {
			t.Errorf("over gRPC: %q, %v", host, err)
		}
	}
	for origin, status := range map[string]int{"https://one.example": 200, "https://two.example": 403} {
		if resp := send(t, clients(t)["HTTP/1.1"], "http://"+addr+"/Host.Ask", "{}", "Origin", origin); resp.StatusCode != status || host != addr {
			t.Errorf("%s: %d, host %q", origin, resp.StatusCode, host)
		}
	}
}

// curl calls with -d alone; a page that sends a form does not.
func TestCurlNeedsNoContentType(t *testing.T) {
	_, addr := serve(t)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{append(form, "User-Agent", "curl/8.14.1"), 200},
		{append(form, "User-Agent", "Mozilla/5.0"), 415},
		{append(form, "User-Agent", "curl/8.14.1", "Referer", "https://evil.example/"), 415},
		{append(form, "User-Agent", "curl/8.14.1", "Sec-Fetch-Site", "none"), 415},
	} {
		if resp := send(t, clients(t)["HTTP/1.1"], "http://"+addr+"/Arith.Mul", `{"A":7,"B":8}`, c.headers...); resp.StatusCode != c.status {
			t.Errorf("%v: %d, want %d", c.headers, resp.StatusCode, c.status)
		}
	}
}
