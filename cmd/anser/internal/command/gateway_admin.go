package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/telemetry"
	"github.com/anser-rpc/anser/telemetry/prometheus"
)

// watch measures the calls of the gateway with the options, and serves its admin page, with
// metrics, at the address of --admin. end ends the page.
func (f *gatewayFlags) watch(opts *gateway.Options, log *slog.Logger, out io.Writer) (end func(), err error) {
	meter := telemetry.New()
	pageOptions := []admin.Option{admin.Name("gateway"), admin.Logger(log), admin.Handle("metrics", prometheus.Handler(meter))}
	if token := os.Getenv(adminTokenVariable); token != "" {
		pageOptions = append(pageOptions, admin.Token(token))
	}
	if f.public {
		pageOptions = append(pageOptions, admin.InsecurePublic())
	}
	page, err := admin.New(meter, pageOptions...)
	if err != nil {
		return nil, &usageError{err}
	}
	l, err := page.Listen(f.admin)
	if err != nil {
		return nil, &usageError{err}
	}
	opts.Server, opts.Dial = append(opts.Server, meter.Option()), append(opts.Dial, meter.Option())
	served := make(chan error, 1)
	go func() { served <- page.Serve(l) }()
	fmt.Fprintf(out, "admin page at http://%s/, with metrics at /metrics\n", l.Addr())
	return func() {
		page.Close()
		<-served
	}, nil
}
