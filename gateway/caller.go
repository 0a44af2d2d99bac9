package gateway

import (
	"context"
	"net"
	"strings"

	"github.com/anser-rpc/anser"
)

// The keys of metadata that name the caller of the gateway to the services. Values that a caller
// sends under them do not go through.
const (
	callerKey    = "gateway-caller" // the subject of the identity
	groupsKey    = "gateway-groups" // its groups, with commas between them
	forwardedKey = "x-forwarded-for"
)

// hopByHop are the headers of HTTP that concern one connection (RFC 9110, section 7.6.1), and those
// of the gateway's own authentication.
var hopByHop = []string{
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
	"transfer-encoding", "upgrade",
}

// addCaller adds the identity and the address of the caller.
func addCaller(ctx context.Context, md anser.Metadata) {
	if id := anser.IdentityFrom(ctx); id != nil {
		nameIdentity(id, md)
	}
	addAddress(ctx, md)
}

// addAddress adds the address of the caller behind what the caller has sent.
func addAddress(ctx context.Context, md anser.Metadata) {
	if peer, ok := anser.PeerFrom(ctx); ok && peer.Addr != nil {
		if host, _, err := net.SplitHostPort(peer.Addr.String()); err == nil {
			if before := md[forwardedKey]; before != "" {
				host = before + ", " + host
			}
			md[forwardedKey] = host
		}
	}
}

func nameIdentity(id *anser.Identity, md anser.Metadata) {
	md[callerKey] = oneLine(id.Subject)
	if len(id.Groups) > 0 {
		md[groupsKey] = oneLine(strings.Join(id.Groups, ","))
	}
}

// oneLine returns a text as metadata can carry it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
