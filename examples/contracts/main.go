// Command contracts is a system of four services, each with a contract of another kind: protobuf,
// a Go interface, FlatBuffers, and kiss-rpc's language. A shop finds them in a registry and calls them
// through generated clients.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/examples/contracts/catalog"
	"github.com/anser-rpc/anser/examples/contracts/delivery"
	"github.com/anser-rpc/anser/examples/contracts/mail"
	"github.com/anser-rpc/anser/examples/contracts/stock"
	"github.com/anser-rpc/anser/registry"
)

// items implements catalog.CatalogServer.
type items []*catalog.Item

func (list items) Find(_ context.Context, in *catalog.FindRequest) (*catalog.Item, error) {
	for _, i := range list {
		if i.Name == in.Name {
			return i, nil
		}
	}
	return nil, anser.Errorf(anser.NotFound, "%s is not sold here", in.Name)
}

func (list items) List(_ context.Context, _ *catalog.ListRequest, out anser.Sender[catalog.Item]) error {
	for _, i := range list {
		if err := out.Send(i); err != nil {
			return err
		}
	}
	return nil
}

// shelf implements stock.Stock.
type shelf struct {
	mu   sync.Mutex
	left map[string]int
}

func (s *shelf) Take(_ context.Context, name string, n int) (left int, order bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[name] < n {
		return 0, true, anser.Errorf(anser.FailedPrecondition, "there are only %d of %s", s.left[name], name)
	}
	s.left[name] -= n
	return s.left[name], s.left[name] < 5, nil
}

// depot implements delivery.DeliveryServer.
type depot struct{}

func (depot) Plan(_ context.Context, in *delivery.ParcelT) (*delivery.TripT, error) {
	if in.Grams > 5000 {
		return &delivery.TripT{Vehicle: delivery.VehicleVan, Days: 2}, nil
	}
	return &delivery.TripT{Vehicle: delivery.VehicleBicycle, Days: 1}, nil
}

// postman implements mail.MailServer.
type postman struct{ out io.Writer }

func (p *postman) Send(_ context.Context, in *mail.Letter) (*mail.Receipt, error) {
	fmt.Fprintf(p.out, "  letter to %s: %s\n", in.To, in.Text)
	return &mail.Receipt{Number: 1}, nil
}

var quiet = anser.Logger(slog.New(slog.DiscardHandler))

// serve runs a server that announces itself in reg.
func serve(reg *registry.Memory, service string, register func(*anser.Server) error) (*anser.Server, error) {
	s := anser.NewServer(quiet, anser.Announce(reg, registry.Instance{Service: service}))
	if err := register(s); err != nil {
		return nil, err
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go s.Serve(l)
	return s, nil
}

// shop has the clients of the services.
type shop struct {
	catalog  catalog.CatalogClient
	stock    stock.StockClient
	delivery delivery.DeliveryClient
	mail     mail.MailClient
}

// order sells n pieces of an item.
func (s *shop) order(ctx context.Context, out io.Writer, customer, name string, n int) error {
	item, err := s.catalog.Find(ctx, &catalog.FindRequest{Name: name})
	if err != nil {
		return err
	}
	left, more, err := s.stock.Take(ctx, name, n)
	if err != nil {
		return err
	}
	trip, err := s.delivery.Plan(ctx, &delivery.ParcelT{To: customer, Grams: uint32(n) * 1000})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d × %s, %d cents, by %v in %d days", n, name, int64(n)*item.Cents, trip.Vehicle, trip.Days)
	if _, err := s.mail.Send(ctx, &mail.Letter{To: customer, Text: text}); err != nil {
		return err
	}
	fmt.Fprintf(out, "  %d of %s are left, order more: %v\n", left, name, more)
	return nil
}

func run(out io.Writer) error {
	reg := registry.NewMemory()
	var conns []*anser.Client
	for name, register := range map[string]func(*anser.Server) error{
		"catalog": func(s *anser.Server) error {
			return catalog.RegisterCatalogServer(s, items{{Name: "tea", Cents: 300}, {Name: "pot", Cents: 2500}})
		},
		"stock":    func(s *anser.Server) error { return stock.RegisterStock(s, &shelf{left: map[string]int{"tea": 10}}) },
		"delivery": func(s *anser.Server) error { return delivery.RegisterDeliveryServer(s, depot{}) },
		"mail":     func(s *anser.Server) error { return mail.RegisterMailServer(s, &postman{out}) },
	} {
		s, err := serve(reg, name, register)
		if err != nil {
			return err
		}
		defer s.Close()
	}
	dial := func(service string) *anser.Client {
		c, err := anser.Dial("memory:///"+service, quiet, reg.Scheme("memory"))
		if err != nil {
			log.Fatal(err)
		}
		conns = append(conns, c)
		return c
	}
	s := &shop{
		catalog.NewCatalogClient(dial("catalog")), stock.NewStockClient(dial("stock")),
		delivery.NewDeliveryClient(dial("delivery")), mail.NewMailClient(dial("mail")),
	}
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	ctx := context.Background()
	list, err := s.catalog.List(ctx, new(catalog.ListRequest))
	if err != nil {
		return err
	}
	for item, err := range list.All() {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "sold here: %s for %d cents\n", item.Name, item.Cents)
	}
	for _, order := range []struct {
		name string
		n    int
	}{{"tea", 6}, {"tea", 6}, {"milk", 1}} {
		fmt.Fprintf(out, "order of %d × %s\n", order.n, order.name)
		if err := s.order(ctx, out, "ann", order.name, order.n); err != nil {
			fmt.Fprintf(out, "  %s\n", anser.CodeOf(err))
		}
	}
	return nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
