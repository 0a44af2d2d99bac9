package netrpc_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// Invalid values are rejected by every use of the server or the dialer.
func TestFieldsOutOfRange(t *testing.T) {
	for want, s := range map[string]*netrpc.Server{
		"rpc: Server.MaxMessage is -1: want":         {MaxMessage: -1},
		"rpc: Server.MaxInFlight is -1: want":        {MaxInFlight: -1},
		"rpc: Server.MaxPerConn is -1: want":         {MaxPerConn: -1},
		"rpc: Server.MaxConns is -1: want":           {MaxConns: -1},
		"rpc: Server.Stall is -1ns: want":            {Stall: -1},
		"rpc: Server.ReadTimeout is -1ns: want":      {ReadTimeout: -1},
		"rpc: Server.MaxHandshakes is -1: want":      {MaxHandshakes: -1},
		"rpc: Server.HandshakeTimeout is -1ns: want": {HandshakeTimeout: -1},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(l, nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Serve = %v, want %s", err, want)
		}
		near, far := net.Pipe()
		go s.ServeConn(far)
		if _, err := near.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection of ServeConn: %v, want it to be closed", err)
		}
		_, far = net.Pipe()
		if err := s.ServeRequest(jsonrpc.NewServerCodec(far)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ServeRequest = %v, want %s", err, want)
		}
	}
	for want, d := range map[string]*netrpc.Dialer{
		"rpc: Dialer.MaxMessage is -1: want":    {MaxMessage: -1},
		"rpc: Dialer.ReadTimeout is -1ns: want": {ReadTimeout: -1},
	} {
		if _, err := d.Dial(context.Background(), "tcp", "127.0.0.1:1"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Dial = %v", err)
		}
		if _, err := d.DialHTTP(context.Background(), "tcp", "127.0.0.1:1", ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("DialHTTP = %v", err)
		}
	}
}
