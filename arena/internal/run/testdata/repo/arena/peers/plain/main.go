// Plain is a peer for the tests of the runner. The flag --fault lets it go wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/rpc"
	"os"
	"sync/atomic"

	"github.com/anser-rpc/anser/arena/workload"
)

// fault is what goes wrong.
var fault string

func main() {
	p := workload.Program{
		Name:  "plain",
		Flags: func(f *flag.FlagSet) { f.StringVar(&fault, "fault", "", "what goes wrong") },
		Serve: serve,
		Open:  open,
	}
	p.Main()
}

// open connects. A connection is shared by the callers whose numbers it divides evenly.
func open(_ context.Context, o *workload.ClientOptions) (func(int) workload.Call, func(), error) {
	switch fault {
	case "crash":
		fmt.Fprintln(os.Stderr, "plain: the client's last words")
		os.Exit(3)
	case "babble":
		fmt.Println("this is not an object")
		os.Exit(0)
	}
	message, err := workload.NewMessage(o.Payload)
	if err != nil {
		return nil, nil, err
	}
	c := &client{o: o, message: message}
	if !o.Fresh {
		for i := range o.Connections() {
			conn, err := rpc.Dial("tcp", o.Addr(i))
			if err != nil {
				return nil, nil, err
			}
			c.conns = append(c.conns, conn)
		}
	}
	return c.caller, c.close, nil
}

type client struct {
	o       *workload.ClientOptions
	message *workload.BenchmarkMessage
	conns   []*rpc.Client
	added   atomic.Int32
}

func (c *client) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

func (c *client) caller(i int) workload.Call {
	call := c.say
	if c.o.Workload == "add" {
		call = c.add
	}
	return func(context.Context) error {
		if !c.o.Fresh {
			return call(c.conns[i%len(c.conns)])
		}
		conn, err := rpc.Dial("tcp", c.o.Addr(i))
		if err != nil {
			return err
		}
		defer conn.Close()
		return call(conn)
	}
}

func (c *client) say(conn *rpc.Client) error {
	request, err := c.message.MarshalVT()
	if err != nil {
		return err
	}
	var reply []byte
	if err := conn.Call("Plain.Say", request, &reply); err != nil {
		return err
	}
	m := new(workload.BenchmarkMessage)
	if err := m.UnmarshalVT(reply); err != nil {
		return workload.ErrWrong
	}
	return workload.Check(m)
}

func (c *client) add(conn *rpc.Client) error {
	a := c.added.Add(1) % 1_000_000
	var x int32
	if err := conn.Call("Plain.Add", [2]int32{a, 7}, &x); err != nil {
		return err
	}
	if x != a+7 {
		return workload.ErrWrong
	}
	return nil
}
