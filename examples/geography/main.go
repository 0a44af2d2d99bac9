// Command geography calls servers in five cities from Munich: the nearest one that is not busy.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/registry"
)

// Hello and City are the messages.
type (
	Hello struct{ Stay bool }
	City  struct{ Name string }
)

// Greet returns the city of the server, at once or when the callers leave.
const Greet anser.Method[Hello, City] = "City.Greet"

var cities = []registry.Instance{
	{ID: "Vienna", Latitude: 48.21, Longitude: 16.37},
	{ID: "Zurich", Latitude: 47.38, Longitude: 8.54},
	{ID: "Dublin", Latitude: 53.35, Longitude: -6.26},
	{ID: "Singapore", Latitude: 1.35, Longitude: 103.82},
	{ID: "an unknown place"},
}

func run(out io.Writer) error {
	m := registry.NewMemory()
	defer m.Close()
	arrived, leave := make(chan struct{}), make(chan struct{})
	for _, in := range cities {
		s := anser.NewServer()
		Greet.Handle(s, func(_ context.Context, hello *Hello) (*City, error) {
			if hello.Stay {
				arrived <- struct{}{}
				<-leave
			}
			return &City{in.ID}, nil
		}, anser.Concurrent())
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go s.Serve(l)
		defer s.Close()
		in.Service, in.Address = "city", l.Addr().String()
		if err := m.Register(context.Background(), in); err != nil {
			return err
		}
	}

	// An instance is busy with two calls of this client, a low limit to show the effect.
	munich := balance.Here{Latitude: 48.14, Longitude: 11.58, Full: 2}
	c, err := anser.Dial("memory:///city", m.Scheme("memory"), anser.Balancer(balance.Closest(munich)), anser.Timeout(0))
	if err != nil {
		return err
	}
	defer c.Close()
	greet := func() (string, error) {
		city, err := Greet.Call(context.Background(), c, new(Hello))
		if err != nil {
			return "", err
		}
		return city.Name, nil
	}

	var staying []*anser.Future[City]
	for range 9 {
		name, err := greet()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d calls in flight, the next one goes to %s\n", len(staying), name)
		staying = append(staying, anser.Go[City](context.Background(), c, string(Greet), &Hello{Stay: true}))
		<-arrived
	}
	close(leave)
	for _, f := range staying {
		if _, err := f.Wait(); err != nil {
			return err
		}
	}
	name, err := greet()
	fmt.Fprintf(out, "they are over, the next one goes to %s\n", name)
	return err
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
