package transporttest_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// tcp returns a Listen function with a prefix for the target.
func tcp(prefix string) func(string) (net.Listener, string, error) {
	return func(address string) (net.Listener, string, error) {
		if address == "" {
			address = "127.0.0.1:0"
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, "", err
		}
		return l, prefix + l.Addr().String(), nil
	}
}

func TestTCP(t *testing.T) { transporttest.Run(t, transporttest.Transport{Listen: tcp("")}) }

func TestTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	transporttest.Run(t, transporttest.Transport{
		Listen: tcp("tls://"), TLS: true, ClientCertificate: false,
		Server: []anser.ServerOption{anser.TLS(a.Server(t, false))},
		Client: []anser.DialOption{anser.TLS(a.Client(t))},
	})
}

func TestMutualTLS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	transporttest.Run(t, transporttest.Transport{
		Listen: tcp("tcp://"), TLS: true, ClientCertificate: true,
		Server: []anser.ServerOption{anser.TLS(a.Server(t, true))},
		Client: []anser.DialOption{anser.TLS(a.Client(t))},
	})
}

func TestUnix(t *testing.T) {
	dir, err := os.MkdirTemp("", "unix") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var n atomic.Int32
	transporttest.Run(t, transporttest.Transport{Listen: func(address string) (net.Listener, string, error) {
		if address == "" {
			address = filepath.Join(dir, fmt.Sprint(n.Add(1)))
		}
		l, err := net.Listen("unix", address)
		return l, "unix://" + address, err
	}})
}

func TestMemory(t *testing.T) {
	network := new(ansertest.Network)
	var n atomic.Int32
	transporttest.Run(t, transporttest.Transport{
		Client: []anser.DialOption{anser.Dialer(network.Dial)},
		Listen: func(address string) (net.Listener, string, error) {
			if address == "" {
				address = fmt.Sprintf("memory:%d", n.Add(1))
			}
			return network.Listen(address), address, nil
		},
	})
}
