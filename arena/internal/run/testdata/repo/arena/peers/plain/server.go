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

// each is how often something goes wrong. Calls that fail are fewer than one in a hundred, with which a row is invalid.
var each = map[string]int64{"wrong": 100, "failing": 200, "crash": 100}

// Say answers the benchmark's message.
func (p *Plain) Say(request []byte, reply *[]byte) error {
	m := new(workload.BenchmarkMessage)
	if err := m.UnmarshalVT(request); err != nil {
		return err
	}
	p.o.Answer(m)
	if n := each[fault]; n > 0 && p.calls.Add(1)%n == 0 {
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
	if fault == "wrong" && p.calls.Add(1)%each[fault] == 0 {
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
