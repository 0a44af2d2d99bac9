// Command hostile is a process for the tests of pages and terminals, whose methods and calls have
// names that try to be markup, and to control a terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

const (
	markup  = "<img src=x onerror=alert(1)>"
	control = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\r\n" + markup
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run serves until the input ends.
func run() error {
	meter := telemetry.New(telemetry.Slow(time.Millisecond))
	s := anser.NewServer(meter.Option())
	for _, name := range []string{"Evil." + markup, "Evil.Plain"} {
		anser.Handle(s, name, func(context.Context, *struct{ Text string }) (*struct{ Text string }, error) {
			return nil, anser.Errorf(anser.NotFound, "%s", control)
		}, anser.Idempotent())
	}
	page, err := admin.New(meter, admin.Name(control), admin.FlightRecorder(time.Hour, time.Minute))
	if err != nil {
		return err
	}
	defer page.Close()
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l, err := page.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- s.Serve(service) }()
	go func() { failed <- page.Serve(l) }()
	defer s.Close()
	fmt.Printf("service %s\npage %s\n", service.Addr(), l.Addr())
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	call(meter.Observer())
	for tick := time.NewTicker(time.Second); ; {
		select {
		case err := <-failed:
			return err
		case <-tick.C:
			call(meter.Observer())
		}
	}
}

// call tells the meter of calls with hostile names and errors.
func call(o anser.Observer) {
	err := errors.New(control)
	o.CallEnded(context.Background(), &anser.CallInfo{Server: true, Method: "Evil." + control, Duration: time.Second, Queue: time.Millisecond, Handle: time.Second, Err: err, Address: control})
	o.CallEnded(context.Background(), &anser.CallInfo{Target: control, Method: "Evil." + control, Duration: time.Second, Err: err, Address: control})
}
