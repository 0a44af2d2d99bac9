package quic_test

import (
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/quic"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQUIC(t *testing.T) {
	a := transporttest.NewAuthority(t)
	config := a.Server(t, true)
	transporttest.Run(t, transporttest.Transport{
		TLS: true, ClientCertificate: true,
		Client: []anser.DialOption{quic.Transport(), anser.TLS(a.Client(t))},
		Listen: func(address string) (net.Listener, string, error) {
			if address == "" {
				address = "127.0.0.1:0"
			}
			l, err := quic.Listen(address, config)
			if err != nil {
				return nil, "", err
			}
			t.Cleanup(func() {
				l.Close()
				l.Wait()
			})
			return l, "quic://" + l.Addr().String(), nil
		},
	})
}
