package protocols

import (
	"cmp"
	"fmt"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// EnforcementPolicy says how often an HTTP/2 client, such as one of gRPC, may send a PING frame.
// It has the fields and the meaning of keepalive.EnforcementPolicy in grpc-go.
type EnforcementPolicy struct {
	// MinTime is the minimum time between two PING frames. 0 means that of [anser.MinPing], which
	// is 5 s by default.
	MinTime time.Duration
	// PermitWithoutStream permits PING frames while the client has no request open. Without it,
	// there must be two hours between them.
	PermitWithoutStream bool
}

// KeepaliveEnforcementPolicy sets how often HTTP/2 clients may send PING frames; the default is
// EnforcementPolicy{PermitWithoutStream: true}. A client that sends three too early, without an
// answer of the server in between, is disconnected with ENHANCE_YOUR_CALM and "too_many_pings".
// gRPC clients ping half as often after that. [anser.Keepalive] sets when the server sends PING
// frames itself.
func KeepaliveEnforcementPolicy(p EnforcementPolicy) Option {
	return func(o *options) {
		if p.MinTime < 0 {
			o.errs = append(o.errs, fmt.Errorf("protocols.KeepaliveEnforcementPolicy: MinTime is %v: want at least 0", p.MinTime))
			return
		}
		o.pings = p
	}
}

// setTimes sets the times of connections.
func (o *options) setTimes(config *h2.Config, t anser.ConnTimes) {
	config.Stall, config.FrameTime = t.WriteStall, frameTime(t)
	config.KeepaliveIdle, config.KeepaliveAnswer = t.KeepaliveIdle, t.KeepaliveAnswer
	config.MinPing, config.PingWithoutStream = cmp.Or(o.pings.MinTime, t.MinPing), o.pings.PermitWithoutStream
}

// frameTime returns how long the rest of a frame of HTTP/2, or of an HTTP/1.1 header, may take to
// arrive.
func frameTime(t anser.ConnTimes) time.Duration {
	if t.ReadTimeout > 0 {
		return min(t.ReadTimeout, t.WriteStall)
	}
	return t.WriteStall
}
