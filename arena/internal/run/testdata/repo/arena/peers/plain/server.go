package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"sync/atomic"

	"github.com/anser-rpc/anser/arena/workload"
)

// Plain is the service.
type Plain struct {
	o     *workload.ServerOptions
	calls atomic.Int64
}

// each is how often something goes wrong.
const each = 100

// Say answers the benchmark's message.
func (p *Plain) Say(request []byte, reply *[]byte) error {
	m := new(workload.BenchmarkMessage)
	if err := m.UnmarshalVT(request); err != nil {
		return err
	}
	p.o.Answer(m)
	if p.calls.Add(1)%each == 0 {
		switch fault {
		case "wrong":
			*m.Field2++
		case "failing":
			return errors.New("this one failed")
		case "crash":
			fmt.Fprintln(os.Stderr, "plain: the server's last words")
			os.Exit(5)
		}
	}
	var err error
	*reply, err = m.MarshalVT()
	return err
}

// Add adds.
func (p *Plain) Add(request [2]int32, reply *int32) error {
	p.o.Delay()
	*reply = request[0] + request[1]
	if p.calls.Add(1)%each == 0 && fault == "wrong" {
		*reply++
	}
	return nil
}

func serve(ctx context.Context, o *workload.ServerOptions) error {
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	s := rpc.NewServer()
	if err := s.Register(&Plain{o: o}); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			break
		}
		if fault != "mute" {
			go s.ServeConn(conn)
		}
	}
	if fault == "rude" {
		os.Exit(4)
	}
	return nil
}
