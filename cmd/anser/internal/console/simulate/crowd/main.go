// Command crowd serves a console of simulated instances, 1,000 of 100 services by default, of which
// one has names that try to be markup. Tests of the page use it. It ends with its input.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry"
)

const markup = "<img src=x onerror=alert(1)>"

var (
	services  = flag.Int("services", 100, "services")
	instances = flag.Int("instances", 10, "instances of each service")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	sim := simulate.New(simulate.Options{Services: *services, Instances: *instances, Rate: 100, Base: "http://" + l.Addr().String() + "/"})
	sim.Hook(0, simulate.Hook{Change: hostile})
	pages := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	go pages.Serve(l)
	defer pages.Close()
	reg := registry.NewMemory()
	if err := sim.Register(ctx, reg); err != nil {
		return err
	}
	evil := registry.Instance{Service: sim.Service(0), ID: markup, Address: "10.9.9.9:8972", Zone: "<b>zone</b>", Version: "\"><script>alert(2)</script>", Tags: map[string]string{"javascript:alert(3)": markup}}
	if err := reg.Register(ctx, evil); err != nil {
		return err
	}
	s, err := site.Open(ctx, site.Options{
		Listen: "127.0.0.1:0", Registry: site.Registry{Name: "memory://", Kind: "memory", Resolver: reg}, Dial: target.Caller(target.Source{}),
	})
	if err != nil {
		return err
	}
	fmt.Printf("console at %s\n", s.URL())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return s.Serve(ctx)
}

// hostile gives the calls of an instance names that try to be markup.
func hostile(d *admin.Document) {
	d.Process.Name = markup
	d.Methods[0].Name = "Evil." + markup
	for _, c := range d.Slow.Calls {
		c.Method, c.Peer, c.Message = "Evil."+markup, markup, markup
	}
}
