package protocols_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// The methods of these tests.
const (
	open   anser.Method[wrapperspb.StringValue, wrapperspb.StringValue] = "test.Doors.Open"
	locked anser.Method[wrapperspb.StringValue, wrapperspb.StringValue] = "test.Doors.Locked"
)

func addDoors(s *anser.Server) {
	say := func(ctx context.Context, _ *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		name := "nobody"
		if id := anser.IdentityFrom(ctx); id != nil {
			name = id.Subject
		}
		return wrapperspb.String(name), nil
	}
	open.Handle(s, say)
	locked.Handle(s, say)
	anser.HandleStream(s, "test.Doors.Watch", func(ctx context.Context, st *anser.Stream[wrapperspb.StringValue, wrapperspb.StringValue]) error {
		if err := st.Send(wrapperspb.String("here")); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
}

// caller calls a method with a token, or "", and returns the subject that the handler has seen.
type caller func(t *testing.T, address, method, token string) (subject string, code anser.Code)

var callers = map[string]caller{
	"anser": func(t *testing.T, address, method, token string) (string, anser.Code) {
		opts := []anser.DialOption{silent}
		if token != "" {
			opts = append(opts, auth.Token(token))
		}
		c, err := anser.Dial(address, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out, err := anser.Call[wrapperspb.StringValue](ctx, c, "test.Doors."+method, new(wrapperspb.StringValue))
		return out.GetValue(), anser.CodeOf(err)
	},
	"grpc": func(t *testing.T, address, method, token string) (string, anser.Code) {
		ctx := t.Context()
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		out := new(wrapperspb.StringValue)
		err := dialGRPC(t, address).Invoke(ctx, "/test.Doors/"+method, new(wrapperspb.StringValue), out)
		return out.GetValue(), anser.Code(status.Code(err))
	},
	"connect": func(t *testing.T, address, method, token string) (string, anser.Code) {
		body, httpStatus := post(t, address, method, token, "application/json", []byte(`""`))
		if httpStatus == http.StatusNotFound {
			return "", anser.Unimplemented
		}
		var text string
		if json.Unmarshal(body, &text) == nil {
			return text, anser.OK
		}
		var e struct{ Code string }
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatalf("the answer is %q: %v", body, err)
		}
		for c := anser.Canceled; c <= anser.Unauthenticated; c++ {
			if strings.ReplaceAll(c.String(), " ", "_") == e.Code {
				return "", c
			}
		}
		return "", anser.Unknown
	},
	"grpc-web": func(t *testing.T, address, method, token string) (string, anser.Code) {
		body, _ := post(t, address, method, token, "application/grpc-web+json", append([]byte{0, 0, 0, 0, 2}, `""`...))
		var text string
		for len(body) >= 5 {
			n := int(binary.BigEndian.Uint32(body[1:]))
			part := body[5 : 5+n]
			if body[0] == 0x80 {
				var code uint8
				for line := range strings.SplitSeq(string(part), "\r\n") {
					fmt.Sscanf(line, "grpc-status: %d", &code)
				}
				return text, anser.Code(code)
			}
			json.Unmarshal(part, &text)
			body = body[5+n:]
		}
		return text, anser.Unknown
	},
	"net/rpc": func(t *testing.T, address, method, token string) (string, anser.Code) {
		c, err := rpc.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return callOld(t, c, method, token)
	},
	"json-rpc": func(t *testing.T, address, method, token string) (string, anser.Code) {
		c, err := jsonrpc.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return callOld(t, c, method, token)
	},
}

func post(t *testing.T, address, method, token, kind string, body []byte) ([]byte, int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/test.Doors/"+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b, resp.StatusCode
}

// callOld calls over a protocol that has no codes: their texts tell them apart.
func callOld(t *testing.T, c *rpc.Client, method, token string) (string, anser.Code) {
	t.Helper()
	defer c.Close()
	if token != "" {
		var ok bool
		if err := c.Call("Anser.Login", token, &ok); err != nil {
			return "", anser.Unauthenticated
		}
	}
	var out struct{ Value string }
	err := c.Call("test.Doors."+method, struct{}{}, &out)
	switch {
	case err == nil:
		return out.Value, anser.OK
	case strings.Contains(err.Error(), "unauthenticated") || errors.Is(err, io.ErrUnexpectedEOF):
		return "", anser.Unauthenticated
	case strings.Contains(err.Error(), "permission denied"):
		return "", anser.PermissionDenied
	}
	t.Logf("%v", err)
	return "", anser.Unknown
}

// Over every protocol a caller is the subject of its token, and may do what the policy says, from
// the moment on at which either changes.
func TestTrustOverEveryProtocol(t *testing.T) {
	ann, bob := auth.NewToken(), auth.NewToken()
	grants := []auth.Grant{
		{Subject: "ann", Groups: []string{"keepers"}, SHA256: auth.Digest(ann)},
		{Subject: "bob", SHA256: auth.Digest(bob)},
	}
	rules := auth.Rules{Allow: []auth.Rule{
		{Methods: []string{"test.Doors.Open"}, Subjects: []string{"*"}},
		{Methods: []string{"test.Doors.Locked", "test.Doors.Watch"}, Groups: []string{"keepers"}},
	}}
	for name, call := range callers {
		t.Run(name, func(t *testing.T) {
			tokens, err := auth.NewTokens(grants...)
			if err != nil {
				t.Fatal(err)
			}
			policy, err := auth.NewPolicy(rules)
			if err != nil {
				t.Fatal(err)
			}
			address := serve(t, addDoors, anser.Authenticate(tokens), anser.Authorize(policy))
			for _, row := range []struct {
				method, token, subject string
				code                   anser.Code
			}{
				{"Open", ann, "ann", anser.OK},
				{"Open", bob, "bob", anser.OK},
				{"Locked", ann, "ann", anser.OK},
				{"Locked", bob, "", anser.PermissionDenied},
				{"Open", "", "", anser.Unauthenticated},
				{"Open", "wrong", "", anser.Unauthenticated},
				{"open", ann, "", anser.PermissionDenied},
				{"Locked.", bob, "", anser.PermissionDenied},
			} {
				subject, code := call(t, address, row.method, row.token)
				unknown := row.code == anser.PermissionDenied && (code == anser.Unimplemented || code == anser.Unknown)
				if subject != row.subject || code != row.code && !(unknown && row.method != "Locked") {
					t.Errorf("%s: the subject is %q, code %v, want %q and %v", row.method, subject, code, row.subject, row.code)
				}
			}
			if err := tokens.Set(grants[0]); err != nil {
				t.Fatal(err)
			}
			if subject, code := call(t, address, "Open", bob); code != anser.Unauthenticated {
				t.Errorf("a token that was withdrawn is %q, code %v", subject, code)
			}
			if err := policy.Set(auth.Rules{}); err != nil {
				t.Fatal(err)
			}
			if subject, code := call(t, address, "Locked", ann); code != anser.PermissionDenied {
				t.Errorf("after the policy has changed: %q, code %v", subject, code)
			}
		})
	}
}

// Two callers share a connection, as behind a proxy, and each keeps its own identity. An open stream
// ends when its caller loses the right to it, and the other caller goes on.
func TestTwoIdentitiesOnOneConnection(t *testing.T) {
	ann, bob := auth.NewToken(), auth.NewToken()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ann", SHA256: auth.Digest(ann)}, auth.Grant{Subject: "bob", SHA256: auth.Digest(bob)})
	if err != nil {
		t.Fatal(err)
	}
	conn := dialGRPC(t, serve(t, addDoors, anser.Authenticate(tokens)))
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	for range 3 {
		for want, token := range map[string]string{"ann": ann, "bob": bob} {
			out := new(wrapperspb.StringValue)
			if err := conn.Invoke(as(token), "/test.Doors/Open", new(wrapperspb.StringValue), out); err != nil || out.Value != want {
				t.Errorf("the handler has seen %q, %v, want %q", out.Value, err, want)
			}
		}
	}
	st, err := conn.NewStream(as(bob), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Doors/Watch")
	if err != nil {
		t.Fatal(err)
	}
	in := new(wrapperspb.StringValue)
	if err := st.RecvMsg(in); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Set(auth.Grant{Subject: "ann", SHA256: auth.Digest(ann)}); err != nil {
		t.Fatal(err)
	}
	if err := st.RecvMsg(in); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream of a caller whose token was withdrawn ends with %v", err)
	}
	if err := conn.Invoke(as(ann), "/test.Doors/Open", new(wrapperspb.StringValue), in); err != nil {
		t.Errorf("the other caller: %v", err)
	}
}

// A server that other machines reach refuses every protocol without TLS and authentication.
func TestPublicWithoutProtection(t *testing.T) {
	s, _ := start(t, addDoors)
	if l, err := net.Listen("tcp", "0.0.0.0:0"); err == nil {
		if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), "InsecurePublic") {
			t.Errorf("Serve: %v", err)
		}
	}
}
