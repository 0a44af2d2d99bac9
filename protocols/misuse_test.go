package protocols_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// Options that cannot work are errors of Serve.
func TestMisuse(t *testing.T) {
	for name, c := range map[string]struct {
		option protocols.Option
		want   string
	}{
		"nil":                      {nil, "an option of protocols.HTTP is nil"},
		"Handler nil":              {protocols.Handler(nil), "protocols.Handler: the handler is nil"},
		"AllowOrigins empty":       {protocols.AllowOrigins(""), `protocols.AllowOrigins: "" is not an origin`},
		"AllowOrigins host":        {protocols.AllowOrigins("app.example"), `"app.example" is not an origin`},
		"AllowOrigins with a path": {protocols.AllowOrigins("https://app.example/"), `"https://app.example/" is not an origin`},
		"AllowOrigins capitals":    {protocols.AllowOrigins("https://App.example"), `use "https://app.example"`},
		"AllowHosts empty":         {protocols.AllowHosts(""), `protocols.AllowHosts: "" is not a host`},
		"AllowHosts URL":           {protocols.AllowHosts("http://app.example"), `"http://app.example" is not a host`},
		"AllowHosts with a port":   {protocols.AllowHosts("app.example:80"), `"app.example:80" is not a host`},
	} {
		t.Run(name, func(t *testing.T) {
			s := anser.NewServer(protocols.All(c.option), anser.NoSignals(), anser.Logger(slog.New(slog.DiscardHandler)))
			defer s.Close()
			l, err := s.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l.Close() // so that Serve returns in any case
			if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
	var none context.Context // nil
	if protocols.RequestFrom(none) != nil || protocols.LastEventID(none) != "" {
		t.Error("a nil context has a request")
	}
	if err := protocols.SetEventID(none, "1"); err == nil {
		t.Error("an event of a nil context got an id")
	}
	serve(t, anser.Protocols(protocols.HTTP(protocols.AllowOrigins("*", "null", "https://app.example", "http://localhost:5173"), protocols.AllowHosts("app.example"))))
}
