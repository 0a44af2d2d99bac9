package anser_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
)

// A protocol of lines: a request is the name of a method and a text, a reply is a text.
func ExampleServer_OpenConn() {
	s := anser.NewServer(anser.NoSignals())
	defer s.Close()
	anser.Handle(s, "Words.Upper", func(_ context.Context, in *[]byte) (*[]byte, error) {
		out := []byte(strings.ToUpper(string(*in)))
		return &out, nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go serveLines(s, nc)
		}
	}()

	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	replies := bufio.NewScanner(nc)
	for _, request := range []string{"Words.Upper hello", "Words.Lower HELLO"} {
		fmt.Fprintln(nc, request)
		if !replies.Scan() {
			fmt.Println("no reply:", replies.Err())
			return
		}
		fmt.Println(replies.Text())
	}
	// Output:
	// HELLO
	// error: method "Words.Lower" is not served here: did you mean "Words.Upper"?
}

// serveLines serves one connection.
func serveLines(s *anser.Server, nc net.Conn) {
	defer nc.Close()
	conn, err := s.OpenConn(anser.Peer{Addr: nc.RemoteAddr(), Local: nc.LocalAddr()}, anser.ProtocolHooks{
		Drain: func(time.Duration) {}, // the protocol has no message for it
		Close: func(error) { nc.Close() },
	})
	if err != nil {
		fmt.Fprintln(nc, "error:", err)
		return
	}
	requests := bufio.NewScanner(nc)
	defer func() { conn.End(requests.Err()) }()
	for requests.Scan() {
		method, text, _ := strings.Cut(requests.Text(), " ")
		call, refused := conn.Admit(&anser.ProtocolRequest{Method: method, Priority: anser.Normal, Size: len(text)})
		if refused != nil {
			fmt.Fprintln(nc, "error:", refused.Message)
			continue
		}
		in := call.NewRequest()
		message, ok := in.(*[]byte)
		if !ok { // the only type of messages that this protocol has
			call.Refuse(&anser.Error{Code: anser.Unimplemented, Message: "the method does not take bytes"})
			fmt.Fprintln(nc, "error: the method does not take bytes")
			continue
		}
		*message = []byte(text)
		answered := make(chan struct{})
		call.Run(in, func(r anser.ProtocolReply) error {
			defer close(answered)
			if r.Err != nil {
				fmt.Fprintln(nc, "error:", r.Err.Message)
				return nil
			}
			fmt.Fprintf(nc, "%s\n", *r.Message.(*[]byte))
			return nil
		})
		<-answered // one call at a time
	}
}
