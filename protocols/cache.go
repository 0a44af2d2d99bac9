package protocols

import (
	"errors"
	"fmt"

	"golang.org/x/net/http/httpguts"

	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// CacheControl sets the header Cache-Control of the replies to GET of some methods, such as
// "max-age=60" or "public, max-age=3600". They must have idempotency_level = NO_SIDE_EFFECTS. The
// default is "private, no-cache": only the caller's own cache keeps a reply, and asks for each use
// whether it is still the same (ETag and If-None-Match). A reply that depends on its caller by more
// than the header Authorization, such as a certificate, must stay private. A method that is not
// served or has side effects is an error of [anser.Server.Serve].
func CacheControl(value string, methods ...string) Option {
	return func(o *options) {
		if value == "" || !httpguts.ValidHeaderFieldValue(value) || len(methods) == 0 {
			o.errs = append(o.errs, fmt.Errorf("protocols.CacheControl(%q, %q): want the value of a header, and at least one method", value, methods))
			return
		}
		if o.cache == nil {
			o.cache = make(exchange.Cacher)
		}
		for _, m := range methods {
			o.cache[m] = value
		}
	}
}

// checkCache returns which of the methods cannot be kept.
func checkCache(c exchange.Cacher, methods *exchange.Directory) error {
	var wrong []error
	for name := range c {
		switch m := methods.FindName(name); {
		case m == nil:
			wrong = append(wrong, fmt.Errorf("protocols.CacheControl: method %q is not served", name))
		case !m.Safe || m.Stream:
			wrong = append(wrong, fmt.Errorf("protocols.CacheControl: method %q is not one of a single reply with idempotency_level = NO_SIDE_EFFECTS", name))
		}
	}
	return errors.Join(wrong...)
}
