package anser

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/wire"
)

// DialOption configures a [Client]. In addition to the options of this package, a [registry.Scheme]
// is one: it adds a scheme that Dial understands.
type DialOption interface{ DialOption() }

// DialCallOption configures all calls of a [Client], or one call.
type DialCallOption interface {
	DialOption
	CallOption
}

type dialOption func(*dialOptions)

func (dialOption) DialOption() {}

type dialCallOption func(*callOptions)

func (dialCallOption) DialOption() {}

func (f dialCallOption) applyCall(o *callOptions) { f(o) }

type dialOptions struct {
	sideOptions
	call           callOptions
	schemes        []registry.Scheme
	transports     []Transport
	balancer       balance.Balancer
	conns          int // 0: the default of the transport
	connectTimeout time.Duration
	dialer         func(ctx context.Context, network, address string) (net.Conn, error)
	slowStart      time.Duration
	breaker        Breaker
	ejection       OutlierDetection
	subset         subset
	snapshotDir    string
	noSnapshot     bool
	budgetRatio    float64
	budgetRate     float64
	backupShare    float64
	failback       FailbackLimits
	handlers       callHandler
	newRouter      func(*RouterContext) (Router, error)
	credentials    *credentials // nil: none
	inTheClear     bool         // credentials may be sent unprotected
}

// defaultConns is the default number of connections to an address.
const defaultConns = 2

func defaultDialOptions() dialOptions {
	return dialOptions{
		sideOptions: defaultSideOptions(), balancer: balance.P2C(),
		breaker: defaultBreaker(), ejection: defaultEjection(), subset: defaultSubset(),
		connectTimeout: 5 * time.Second, budgetRatio: 0.2, budgetRate: 10,
		backupShare: 0.05, failback: defaultFailbackLimits,
		call: callOptions{timeout: 10 * time.Second, attempts: defaultAttempts, forks: defaultForks},
	}
}

// apply applies one option.
func (o *dialOptions) apply(opt DialOption) error {
	switch opt := opt.(type) {
	case dialOption:
		opt(o)
	case sideOption:
		opt(&o.sideOptions)
	case CallOption:
		opt.applyCall(&o.call)
	case Transport:
		if err := opt.check(); err != nil {
			return err
		}
		o.transports = append(o.transports, opt)
	case Transports:
		for _, t := range opt {
			if err := o.apply(t); err != nil {
				return err
			}
		}
	case Breaker:
		opt.set(o)
	case OutlierDetection:
		opt.set(o)
	case registry.Scheme:
		if opt.Name == "" || opt.Open == nil {
			return fmt.Errorf("the registry.Scheme %q is not complete: it needs a Name and a function Open", opt.Name)
		}
		o.schemes = append(o.schemes, opt)
	case nil:
		return errors.New("an option of Dial is nil")
	default:
		return fmt.Errorf("dial option of type %T is not one of package anser, an anser.Transport or a registry.Scheme", opt)
	}
	return nil
}

// Balancer sets how instances are chosen; the default is balance.P2C.
func Balancer(b balance.Balancer) DialOption {
	return dialOption(func(o *dialOptions) {
		if !o.wants(b != nil, "anser.Balancer: the balancer is nil: leave the option out for balance.P2C") {
			return
		}
		o.balancer = b
		if v, ok := b.(interface{ Validate() error }); ok {
			err := v.Validate()
			o.wants(err == nil, "anser.Balancer: %q: %w", b.Name(), err)
		}
	})
}

// SlowStart makes an instance that is new, or that was unreachable for a while, begin with a tenth
// of its weight, which grows to all of it within d; the default is 0, which disables it. It works
// with every balancer that uses weights. The instances of the first list have their full weight, as
// the client cannot know how long they have been there.
func SlowStart(d time.Duration) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(d >= 0, "anser.SlowStart(%v): want at least 0", d) {
			o.slowStart = d
		}
	})
}

// Conns sets the initial number of connections to an address, which all clients of the process
// share; the default is 2, or that of the [Transport]. More are made when these are saturated.
// Clients with different values share the largest number.
func Conns(n int) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(n >= 1, "anser.Conns(%d): want at least 1", n) {
			o.conns = n
		}
	})
}

// ConnectTimeout bounds the time to make a connection: calling [Credentials], resolving the name,
// dialing, and the handshakes of TLS and of Anser, which [HandshakeTimeout] also bounds by
// themselves. The default is 5 s. A call waits at most 250 ms for an instance while others may do;
// see docs/governance/failmodes.md.
func ConnectTimeout(d time.Duration) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(d > 0, "anser.ConnectTimeout(%v): want a time above 0", d) {
			o.connectTimeout = d
		}
	})
}

// Dialer replaces the function that makes connections. A client with its own dialer shares its
// connections with no other client. dial must return when ctx ends, at the latest after
// [ConnectTimeout]: a call may wait for it.
func Dialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) DialOption {
	return dialOption(func(o *dialOptions) {
		o.wants(dial != nil, "anser.Dialer: the function is nil: leave the option out for net.Dialer")
		o.dialer = dial
	})
}

// SnapshotDir sets the directory in which the client saves the last list of instances from its
// registry, for a start while the registry is down. The default is "anser" in the user's cache
// directory.
func SnapshotDir(dir string) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(dir != "", "anser.SnapshotDir: the directory is empty: leave the option out, or use anser.NoSnapshot for no snapshots") {
			o.snapshotDir = dir
		}
	})
}

// NoSnapshot keeps the list of instances in memory only.
func NoSnapshot() DialOption {
	return dialOption(func(o *dialOptions) { o.noSnapshot = true })
}

// RetryBudget limits the retries of the client: to a fraction of its calls plus a number per
// second, over the last ten seconds. The default is 0.2 and 10. Retries of calls that were never
// sent are free.
func RetryBudget(ratio, perSecond float64) DialOption {
	return dialOption(func(o *dialOptions) {
		if o.wants(ratio >= 0 && perSecond >= 0 && ratio <= math.MaxFloat64 && perSecond <= math.MaxFloat64,
			"anser.RetryBudget(%v, %v): want numbers of at least 0, and finite ones", ratio, perSecond) {
			o.budgetRatio, o.budgetRate = ratio, perSecond
		}
	})
}

// Codec sets the codec of requests and replies. The default depends on the types: one of [Codecs]
// that fits them, protobuf for protobuf messages, raw for []byte, binary for types that marshal
// themselves, the codec that a type brings ([codec.Own]), and otherwise MessagePack. Codec(nil)
// selects the default for a call of a client with another codec.
func Codec(c codec.Codec) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.codec = c })
}

// Timeout bounds how long a call may take. Given to a call, it applies along with the deadline of
// the context: the call ends at the earlier of the two. Given to Dial, it bounds the calls whose
// context has no deadline and that have no Timeout of their own; the default is 10 s. 0 means no
// limit, and with a negative value a call times out at once. Streams have no limit unless Timeout
// is given to [Open]; the Timeout of the client bounds only their opening.
func Timeout(d time.Duration) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.timeout, o.bounded = d, d != 0 })
}

// WithFailMode sets the fail mode; the default is Failover.
func WithFailMode(m FailMode) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.setMode("anser.WithFailMode", m) })
}

// Attempts sets the maximum number of times that a call is sent: 1 to 5, the default is 3. Attempts
// that were not sent do not count.
func Attempts(n int) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.setAttempts("anser.Attempts", n) })
}

// RetryOn lists codes of executed calls after which an idempotent method is retried: any but [OK].
// Without codes, the default, it is not retried then.
func RetryOn(codes ...Code) DialCallOption {
	return dialCallOption(func(o *callOptions) {
		for _, c := range codes {
			if !o.wants(c != OK && c <= Unauthenticated, "anser.RetryOn(%d): want codes of errors, anser.Canceled (1) to anser.Unauthenticated (%d)", c, Unauthenticated) {
				return
			}
		}
		o.retryOn = codes
	})
}

// HashKey sets the key of the call, for balancers that send calls with the same key to the same
// instance, such as balance.ConsistentHash. An empty key is none.
func HashKey(key string) CallOption {
	var hash uint64
	if key != "" {
		hash = balance.Hash(key)
	}
	return callOption(func(o *callOptions) { o.hashKey = hash })
}

// HashBy sets the function that computes the key of calls without a HashKey; an empty key is none.
// It is called once per call, on the caller's goroutine, with the caller's request, which it must
// not keep or change; the request is nil for a stream that opens without a message. Calls without
// any key are hashed by their method and encoded request, never by the address of a value. As a map
// may be encoded in another order each time, calls with maps need a key. HashBy(nil) disables the
// client's function for a call.
func HashBy(key func(ctx context.Context, method string, request any) string) DialCallOption {
	return dialCallOption(func(o *callOptions) { o.hashBy = key })
}

// HashMetadata takes the key of calls without a HashKey from their metadata: the value of name, see
// [WithMetadata]. A name that metadata cannot have is an error. HashMetadata replaces [HashBy].
func HashMetadata(name string) DialCallOption {
	name = strings.ToLower(name)
	mistake := wire.CheckPair(wire.Pair{Key: name})
	by := func(ctx context.Context, _ string, _ any) string { return outgoing(ctx)[name] }
	return dialCallOption(func(o *callOptions) {
		if o.wants(mistake == nil, "anser.HashMetadata: %w", mistake) {
			o.hashBy = by
		}
	})
}

// Trailer stores the metadata that the server sent with the reply or error in *md.
func Trailer(md *Metadata) CallOption {
	return callOption(func(o *callOptions) {
		if o.wants(md != nil, "anser.Trailer: the pointer is nil: leave the option out") {
			o.trailer = md
		}
	})
}

// Forks sets the number of instances that a call with the mode [Fork] goes to at once: 2 to 5, the
// default is 2. If there are fewer, it goes to all.
func Forks(n int) DialCallOption {
	return dialCallOption(func(o *callOptions) {
		if o.wants(n >= defaultForks && n <= maxAttempts, "anser.Forks(%d): want %d to %d", n, defaultForks, maxAttempts) {
			o.forks = n
		}
	})
}

// At sends a call to the instance with the key (see [registry.Instance.Key]) and to no other. If
// the client knows no such instance, the call fails at once. In the modes that use another instance
// or several, it is retried at this one. A [Router] does not change where the call goes, as the
// call has named its instance; the router's interceptor applies. [Client.Instances] has the keys.
func At(key string) CallOption {
	return callOption(func(o *callOptions) { o.at, o.pinned = key, true })
}

func (sideOption) DialOption() {}

func (idempotentOption) DialOption() {}

func (idempotentOption) applyCall(o *callOptions) { o.idempotent = true }

// Credentials makes the client present a credential to each server that it connects to. source is
// called before each connection is made. It is called again when a quarter of the credential's
// lifetime remains, or three seconds, but at most half of the lifetime, if that is longer; the new
// credential renews the existing connections, and the calls on them continue. A lifetime of less
// than about five seconds is therefore too short. source is called from several goroutines at once;
// ctx ends after the options [HandshakeTimeout] and [ConnectTimeout] and when the client is closed.
// While source fails, no connection is made: calls fail with its error, which must not contain the
// secret. A failed renewal is retried until it succeeds.
//
// A credential is sent only over TLS, over unix sockets, and on the loopback interface; see
// [InsecureCredentials]. Clients share connections only if they were given the same option value.
func Credentials(source func(ctx context.Context) (Credential, error)) DialOption {
	shared := &credentials{source}
	return dialOption(func(o *dialOptions) {
		if o.wants(source != nil, "anser.Credentials: the source is nil: leave the option out") &&
			o.wants(o.credentials == nil, "anser.Credentials is given twice: a connection has one") {
			o.credentials = shared
		}
	})
}

// InsecureCredentials allows [Credentials] to be sent over unprotected connections. An attacker on
// the network path can read them, and impersonate the client.
func InsecureCredentials() DialOption {
	return dialOption(func(o *dialOptions) { o.inTheClear = true })
}
