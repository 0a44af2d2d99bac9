// Command registry shows that the registry depends on one string: first etcd inside the process,
// then a cluster of three members, and the same server and client with both.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/route"
)

// Args and Reply are the messages.
type (
	Args  struct{ A, B int }
	Reply struct{ C int }
)

// Mul is the contract.
const Mul anser.Method[Args, Reply] = "Arith.Mul"

func mul(_ context.Context, in *Args) (*Reply, error) { return &Reply{C: in.A * in.B}, nil }

// serve announces an instance in the registry of the target.
func serve(target string) (stop func(), err error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	endpoints, prefix, service, err := etcd.Parse(u)
	if err != nil {
		return nil, err
	}
	reg, err := etcd.Dial(endpoints, etcd.Prefix(prefix))
	if err != nil {
		return nil, err
	}
	quiet := anser.Logger(slog.New(slog.DiscardHandler))
	s := anser.NewServer(anser.Announce(reg, registry.Instance{Service: service}), quiet)
	Mul.Handle(s, mul)
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go s.Serve(l)
	return func() { s.Shutdown(context.Background()); reg.Close() }, nil
}

// call finds the instance in the registry of the target, and calls it.
func call(target string) (*Reply, error) {
	c, err := anser.Dial(target, etcd.Scheme(), route.Rules(), anser.NoSnapshot())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return Mul.Call(ctx, c, &Args{A: 7, B: 8})
}

// both runs server and client with the registry of the target.
func both(out io.Writer, what, target string) error {
	stop, err := serve(target)
	if err != nil {
		return err
	}
	defer stop()
	reply, err := call(target)
	if err == nil {
		fmt.Fprintf(out, "%s: 7 * 8 = %d\n", what, reply.C)
	}
	return err
}

func run(out io.Writer) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	member, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dir, "one"), Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer member.Close()
	if err := both(out, "etcd inside the process", "etcd://"+member.Endpoint()+"/arith"); err != nil {
		return err
	}

	// In production, these are three machines that run etcd.
	cluster, err := embedded.StartCluster(ctx, embedded.Config{Dir: filepath.Join(dir, "three")})
	if err != nil {
		return err
	}
	defer cluster.Close()
	return both(out, "a cluster of three", "etcd://"+strings.Join(cluster.Endpoints(), ",")+"/shop/arith")
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
