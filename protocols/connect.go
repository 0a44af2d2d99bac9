package protocols

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/webclient"
)

// Connect is an option of [anser.Dial] by which a client calls Connect servers, in any language:
//
//	c, err := anser.Dial("https://api.example.com:443", protocols.Connect())
//
// Addresses begin with "https://", or with "http://" for servers without TLS. They may as well come
// from a registry. With "https://" the server chooses HTTP/1.1 or HTTP/2, and the option [anser.TLS]
// sets the authorities and the certificate of the client; "http://" means HTTP/1.1 unless there is
// the option [UnencryptedHTTP2]. Over HTTP/1.1 the calls have as many connections as they need, and
// a server sends its messages of a stream when it has all of the client's.
//
// Names of methods, codecs, credentials and outcomes are as with [GRPC]. Calls are made by
// net/http; where a server also speaks gRPC, [GRPC] costs a fraction of the processor time.
func Connect(opts ...ClientOption) anser.Transports { return webTransports(false, opts) }

// GRPCWeb is [Connect] for servers of gRPC-Web.
func GRPCWeb(opts ...ClientOption) anser.Transports { return webTransports(true, opts) }

// ClientOption configures [Connect] and [GRPCWeb].
type ClientOption func(*webclient.Options)

// UnencryptedHTTP2 makes a client speak HTTP/2 to servers with "http://", which must expect that.
// Streams in both directions at once need HTTP/2.
func UnencryptedHTTP2() ClientOption {
	return func(o *webclient.Options) { o.HTTP2 = true }
}

// CallWithGet makes a client call the methods with GET, so that caches between it and the server
// may answer. They must change nothing (idempotency_level = NO_SIDE_EFFECTS). Messages over 4 KiB
// are sent with POST all the same. It is for [Connect] only: gRPC-Web has no GET.
func CallWithGet(methods ...string) ClientOption {
	return func(o *webclient.Options) {
		if o.Get == nil {
			o.Get = make(map[string]bool)
		}
		for _, name := range methods {
			o.Get[exchange.PathOf(name)] = true
		}
	}
}

func webTransports(web bool, opts []ClientOption) anser.Transports {
	o := webclient.Options{Web: web}
	var err error
	for _, opt := range opts {
		if opt == nil {
			err = errors.New("an option of protocols.Connect or protocols.GRPCWeb is nil")
			continue
		}
		opt(&o)
	}
	if web && o.Get != nil {
		err = errors.New("protocols.CallWithGet is an option of protocols.Connect: gRPC-Web has no GET")
	}
	return anser.Transports{
		{Scheme: "http", Conns: 1, Secure: true, Err: err, Dial: func(ctx context.Context, address string, _ *tls.Config) (net.Conn, error) {
			return webclient.Dial(ctx, address, nil, o)
		}},
		{Scheme: "https", Conns: 1, Secure: true, Err: err, Dial: func(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
			return webclient.Dial(ctx, address, config, o)
		}},
	}
}
