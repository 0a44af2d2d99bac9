// Command server sells tea and coffee to callers in all languages, on one port.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/examples/callers/orders"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/transport/tlsfiles"
)

// shop keeps the orders in memory.
type shop struct {
	mu     sync.Mutex // guards what follows
	orders []*orders.Order
	placed chan struct{} // closed and replaced when an order comes
}

func (s *shop) Place(ctx context.Context, in *orders.PlaceRequest) (*orders.Order, error) {
	if in.Item != "tea" && in.Item != "coffee" {
		return nil, refuse(&orders.BadField{Field: "item", Want: "tea or coffee"}, "there is no %s", in.Item)
	}
	if err := anser.SetTrailer(ctx, "warehouse", "north"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &orders.Order{
		Number: int32(len(s.orders) + 1), Item: in.Item, Quantity: in.Quantity,
		Customer: anser.MetadataFrom(ctx).Get("customer"),
	}
	s.orders = append(s.orders, o)
	close(s.placed)
	s.placed = make(chan struct{})
	return o, nil
}

func (s *shop) Get(_ context.Context, in *orders.GetRequest) (*orders.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Number < 1 || int(in.Number) > len(s.orders) {
		return nil, anser.Errorf(anser.NotFound, "there is no order %d", in.Number)
	}
	return s.orders[in.Number-1], nil
}

func (s *shop) Watch(ctx context.Context, in *orders.WatchRequest, out anser.Sender[orders.Order]) error {
	for n := 0; in.Count == 0 || n < int(in.Count); n++ {
		o, err := s.wait(ctx, n)
		if err != nil {
			return err
		}
		if err := out.Send(o); err != nil {
			return err
		}
	}
	return nil
}

// wait returns an order, as soon as it is there.
func (s *shop) wait(ctx context.Context, n int) (*orders.Order, error) {
	for {
		s.mu.Lock()
		list, placed := s.orders, s.placed
		s.mu.Unlock()
		if n < len(list) {
			return list[n], nil
		}
		select {
		case <-placed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *shop) Import(ctx context.Context, in anser.Receiver[orders.PlaceRequest]) (*orders.ImportReply, error) {
	out := new(orders.ImportReply)
	for m, err := range in.All() {
		if err != nil {
			return nil, err
		}
		if _, err := s.Place(ctx, m); err != nil {
			return nil, err
		}
		out.Count++
	}
	return out, nil
}

func (s *shop) Find(ctx context.Context, st *anser.Stream[orders.Order, orders.GetRequest]) error {
	for in, err := range st.All() {
		if err != nil {
			return err
		}
		o, err := s.Get(ctx, in)
		if err != nil {
			return err
		}
		if err := st.Send(o); err != nil {
			return err
		}
	}
	return nil
}

// refuse returns an error with a detail, in the form that callers of gRPC and Connect expect.
func refuse(bad *orders.BadField, format string, args ...any) error {
	detail, err := anypb.New(bad)
	if err != nil {
		return err
	}
	e := anser.Errorf(anser.InvalidArgument, format, args...)
	status, err := proto.Marshal(&spb.Status{Code: int32(e.Code), Message: e.Message, Details: []*anypb.Any{detail}})
	if err != nil {
		return err
	}
	return e.WithDetails(status)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8972", "address")
	pages := flag.String("pages", "", "folder with pages, which are served on the same port")
	origin := flag.String("origin", "", "origin whose pages may call, such as http://localhost:5173")
	cert := flag.String("cert", "", "certificate, for TLS")
	key := flag.String("key", "", "key of the certificate")
	flag.Parse()

	var web []protocols.Option
	if *pages != "" {
		web = append(web, protocols.Handler(http.FileServer(http.Dir(*pages))))
	}
	if *origin != "" {
		web = append(web, protocols.AllowOrigins(*origin))
	}
	opts := []anser.ServerOption{protocols.All(web...)}
	if *cert != "" {
		files, err := tlsfiles.Open(tlsfiles.Certificate(*cert, *key))
		if err != nil {
			log.Fatal(err)
		}
		defer files.Close()
		opts = append(opts, anser.TLS(files.Server()))
	}
	s := anser.NewServer(opts...)
	orders.RegisterOrdersServer(s, &shop{placed: make(chan struct{})})
	fmt.Println("serving on", *listen)
	if err := s.ListenAndServe(*listen); err != nil {
		log.Fatal(err)
	}
}
