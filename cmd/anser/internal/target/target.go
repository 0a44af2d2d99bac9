// Package target parses the targets of commands: an address, a target of anser.Dial, or the name
// of a service in a registry.
package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
	"github.com/anser-rpc/anser/transport/httpconnect"
	"github.com/anser-rpc/anser/transport/quic"
	"github.com/anser-rpc/anser/transport/websocket"
)

// RegistryVariable is the environment variable that overrides DefaultRegistry.
const RegistryVariable = "ANSER_REGISTRY"

// DefaultRegistry is the default address of `anser demo` and `anser registry`.
const DefaultRegistry = "etcd://127.0.0.1:2379"

// RegistryURL returns the default registry if no flag names one.
func RegistryURL() string {
	if r := os.Getenv(RegistryVariable); r != "" {
		return r
	}
	return DefaultRegistry
}

// transports are the schemes of targets with addresses.
var transports = []string{"tcp", "tls", "unix", "http", "https", "ws", "wss", "quic"}

// Resolve converts a user's input into a target of anser.Dial: the name of a service refers to the
// registry, everything else is a target already.
func Resolve(typed, registryURL string) (string, error) {
	scheme, rest, isTarget := strings.Cut(typed, "://")
	switch {
	case typed == "":
		return "", errors.New("the target is empty: use a service's name, host:port, or a target such as etcd://127.0.0.1:2379/arith")
	case isTarget && slices.Contains(transports, scheme):
		return typed, nil
	case isTarget:
		k := kindOf(scheme)
		if k == nil {
			return "", fmt.Errorf("target %q: unknown scheme %q: use %s%s", typed, scheme,
				strings.Join(slices.Concat(transports, schemes()), ", "), elsewhere(scheme))
		}
		if err := checkURL("target", typed); err != nil {
			return "", err
		}
		if k.servers && !strings.Contains(rest, "/") {
			return "", fmt.Errorf("target %q: there is no service: use %s", typed, at(typed, "service"))
		}
		return typed, nil
	case strings.ContainsAny(typed, ":,/"):
		return typed, nil
	case typed == "localhost" || net.ParseIP(typed) != nil:
		return "", fmt.Errorf("target %q has no port: use host:port", typed)
	}
	if err := registry.CheckService(typed); err != nil {
		return "", err
	}
	if _, err := parseRegistry(registryURL); err != nil {
		return "", err
	}
	return at(registryURL, typed), nil
}

// KeepsRules reports whether a target of anser.Dial is a service of a registry that supports
// traffic rules.
func KeepsRules(full string) bool {
	scheme, _, _ := strings.Cut(full, "://")
	k := kindOf(scheme)
	return k != nil && k.keeps
}

// Dial returns a client for a user's input. It logs nothing and leaves no file behind. The access
// data of the source are also used for any other registry that a target names.
func Dial(typed string, source Source, opts ...anser.DialOption) (*anser.Client, error) {
	full, err := Resolve(typed, source.URL)
	if err != nil {
		return nil, err
	}
	scheme, _, _ := strings.Cut(full, "://")
	used := kindOf(scheme)
	if used != nil {
		if err := used.check(source.Access); err != nil {
			return nil, err
		}
	}
	quiet := []anser.DialOption{
		anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)),
		httpconnect.HTTP(), httpconnect.HTTPS(), websocket.WS(), websocket.WSS(), quic.Transport(),
	}
	if used != nil {
		quiet = append(quiet, used.scheme(source.Access))
	}
	return anser.Dial(full, append(quiet, opts...)...)
}

// Caller returns a function that dials a service as its callers do, with its rules.
func Caller(source Source) func(typed string, opts ...anser.DialOption) (*anser.Client, error) {
	return func(typed string, opts ...anser.DialOption) (*anser.Client, error) {
		if full, err := Resolve(typed, source.URL); err == nil && KeepsRules(full) {
			opts = append(opts, route.Rules())
		}
		return Dial(typed, source, opts...)
	}
}

// Reach checks that the registry of a target or registry URL accepts connections, so that a user
// learns at once that it does not: a Registry itself keeps trying.
func Reach(ctx context.Context, where string) error {
	u, err := url.Parse(where)
	if err != nil {
		return nil // a list of addresses
	}
	if k := kindOf(u.Scheme); k == nil || !k.servers {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var dialer net.Dialer
	for endpoint := range strings.SplitSeq(u.Host, ",") {
		var conn net.Conn
		if conn, err = dialer.DialContext(ctx, "tcp", endpoint); err == nil {
			conn.Close()
			return nil
		}
	}
	u.Path = ""
	return &UnreachableError{Registry: u.Redacted(), Cause: err}
}

// Unanswered returns an error for a registry that Reach has found but that does not answer.
func Unanswered(where string, cause error) error {
	u, err := url.Parse(where)
	if err == nil {
		if k := kindOf(u.Scheme); k != nil && k.servers {
			u.Path = ""
			return fmt.Errorf("the registry at %s accepts connections, but does not answer: check whether it requires TLS, a user or a token; see --registry-tls and the related flags\n%w", u, cause)
		}
	}
	return &UnreachableError{Registry: where, Cause: cause}
}

// UnreachableError means that a registry cannot be reached.
type UnreachableError struct {
	Registry string
	Cause    error
}

func (e *UnreachableError) Error() string {
	advice := "check that it runs"
	if strings.HasPrefix(e.Registry, "etcd://") {
		advice = "start one with \"anser demo\" or \"anser registry\""
	}
	return fmt.Sprintf("no registry answers at %s: %s, or name another with --registry\n%v", e.Registry, advice, e.Cause)
}

func (e *UnreachableError) Unwrap() error { return e.Cause }
