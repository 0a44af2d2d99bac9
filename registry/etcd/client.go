package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/anser-rpc/anser/registry/internal/upkeep"
)

// attemptTimeout bounds one request, so that the next attempt may use another server.
const attemptTimeout = 3 * time.Second

// client talks to etcd over the connection of a clientv3.Client, but not through its methods:
// those retry silently, so an outage goes unreported, and a watch they resume waits forever if the
// server came back with less data than before.
type client struct {
	conn      *grpc.ClientConn
	endpoints string
	kv        clientv3.KV
	lease     pb.LeaseClient
	watch     pb.WatchClient
	auth      pb.AuthClient
	tokens    *tokenSource // nil if the connection authenticates itself
	close     func() error

	nudged atomic.Int64 // when the last early reconnect was requested, in Unix nanoseconds
}

func newClient(c *clientv3.Client, tokens *tokenSource, close func() error) *client {
	conn := c.ActiveConnection()
	return &client{
		conn:      conn,
		endpoints: strings.Join(c.Endpoints(), ","),
		kv:        clientv3.NewKVFromKVClient(largeKV{pb.NewKVClient(conn)}, nil),
		lease:     pb.NewLeaseClient(conn),
		watch:     pb.NewWatchClient(conn),
		auth:      pb.NewAuthClient(conn),
		tokens:    tokens,
		close:     close,
	}
}

// anySize lifts gRPC's limit of 4 MiB on answers: a list may be larger.
var anySize = grpc.MaxCallRecvMsgSize(math.MaxInt32)

// largeKV reads lists of any size.
type largeKV struct{ pb.KVClient }

func (kv largeKV) Range(ctx context.Context, in *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	return kv.KVClient.Range(ctx, in, append(opts, anySize)...)
}

// attempt makes one request, and repeats it after a new login if the token was missing or has
// expired.
func (c *client) attempt(ctx context.Context, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	var err error
	if c.tokens.early() {
		err = c.tokens.login(limited, c.auth, "")
	}
	token := c.tokens.current()
	if err == nil {
		err = rpctypes.Error(request(limited))
		if c.tokens.needed(err, token) {
			if err = c.tokens.login(limited, c.auth, token); err == nil {
				err = rpctypes.Error(request(limited))
			}
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil: // not the caller's own context
		return fmt.Errorf("etcd at %s has not answered within %v", c.endpoints, attemptTimeout)
	}
	return fmt.Errorf("etcd at %s: %w", c.endpoints, err)
}

// retry makes the request until it succeeds, fails permanently, or ctx is done; in the last case
// the error includes the last failure.
func (c *client) retry(ctx context.Context, request func(context.Context) error) error {
	var delay upkeep.Delay
	var reason error
	for {
		err := c.attempt(ctx, request)
		if err == nil || hopeless(err) {
			return err
		}
		if ctx.Err() != nil {
			return upkeep.Because(context.Cause(ctx), reason)
		}
		reason = err
		if !c.pause(ctx, &delay) {
			return upkeep.Because(context.Cause(ctx), reason)
		}
	}
}

// hopeless reports whether the same request would fail again: etcd rejected its content or its
// user.
func hopeless(err error) bool {
	var server rpctypes.EtcdError
	code := codes.OK
	if errors.As(err, &server) {
		code = server.Code()
	} else if s, ok := status.FromError(err); ok {
		code = s.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// hurry makes a connection in backoff reconnect now, at most once per second. The connection of a
// client that was not made by Dial may wait two minutes.
func (c *client) hurry() {
	now, last := time.Now().UnixNano(), c.nudged.Load()
	if now-last >= int64(time.Second) && c.nudged.CompareAndSwap(last, now) {
		c.conn.ResetConnectBackoff()
	}
}

// pause waits before a request is repeated, and reports false if ctx ended instead.
func (c *client) pause(ctx context.Context, delay *upkeep.Delay) bool {
	if !delay.Wait(ctx, nil) {
		return false
	}
	c.hurry()
	return true
}

// tokenSource logs in with name and password, at first and when etcd asks for it, and adds the
// token to every request. clientv3 can do that too, but its constructor blocks while no server is
// up, and it logs in anew for each stream.
type tokenSource struct {
	user, password string

	loggingIn sync.Mutex // held during a login

	mu    sync.Mutex // guards the fields below
	token string
	open  bool // etcd has answered that authentication is off
}

func newTokenSource(user, password string) *tokenSource {
	return &tokenSource{user: user, password: password}
}

// current returns the token, or "" if there is none.
func (s *tokenSource) current() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// early reports whether to log in before the first request. etcd may never ask for it: it takes
// the name in a client certificate for the user.
func (s *tokenSource) early() bool {
	if s == nil || s.user == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token == "" && !s.open
}

// needed reports whether a request with the token failed because a login is needed.
func (s *tokenSource) needed(err error, token string) bool {
	switch {
	case s == nil || err == nil:
		return false
	case errors.Is(err, rpctypes.ErrPermissionDenied): // denied to the certificate's user, now that authentication is on
		return s.user != "" && token == ""
	}
	return errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrInvalidAuthToken) ||
		errors.Is(err, rpctypes.ErrAuthOldRevision)
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (s *tokenSource) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if token := s.current(); token != "" {
		return map[string]string{rpctypes.TokenFieldNameGRPC: token}, nil
	}
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (s *tokenSource) RequireTransportSecurity() bool { return false }

// login replaces the token, unless another goroutine has done so since it was refused: a hundred
// watches that lose theirs at the same time log in once.
func (s *tokenSource) login(ctx context.Context, auth pb.AuthClient, refused string) error {
	if s.user == "" {
		return fmt.Errorf("%w: use the option etcd.User", rpctypes.ErrUserEmpty)
	}
	s.loggingIn.Lock()
	defer s.loggingIn.Unlock()
	if s.current() != refused {
		return nil
	}
	resp, err := auth.Authenticate(ctx, &pb.AuthenticateRequest{Name: s.user, Password: s.password})
	err = rpctypes.Error(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.token = resp.Token
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
		s.token, s.open = "", true
	default:
		return fmt.Errorf("log in as %q: %w", s.user, err)
	}
	return nil
}
