package transporttest_test

import (
	"net"
	"testing"

	"github.com/anser-rpc/anser/transport/transporttest"
)

// A test of a transport. This one is TCP.
func Example() {
	_ = func(t *testing.T) {
		transporttest.Run(t, transporttest.Transport{Listen: func(address string) (net.Listener, string, error) {
			if address == "" {
				address = "127.0.0.1:0"
			}
			l, err := net.Listen("tcp", address)
			if err != nil {
				return nil, "", err
			}
			return l, "tcp://" + l.Addr().String(), nil
		}})
	}
}
