package anser_test

import (
	"context"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// Trailers that are too large must not end the connection, nor must details or a message.
func TestLargeErrors(t *testing.T) {
	network := new(ansertest.Network)
	var refused error
	s := serve(t, network.Listen("a:1"), map[string]handler{
		"Fail.Trailers": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			for refused == nil {
				refused = anser.SetTrailer(ctx, "key-"+strings.Repeat("x", len(*in)), strings.Repeat("v", 1000))
				*in = append(*in, 'x')
			}
			return nil, anser.Errorf(anser.DataLoss, "lost")
		},
		"Fail.Trailer": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			refused = anser.SetTrailer(ctx, "key", strings.Repeat("v", 8<<20))
			return nil, anser.Errorf(anser.DataLoss, "lost")
		},
		"Fail.Details": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			return nil, anser.Errorf(anser.DataLoss, "lost").WithDetails(make([]byte, 8<<20))
		},
		"Fail.Message": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			return nil, anser.Errorf(anser.DataLoss, "%s", strings.Repeat("long ", 2<<20))
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
	for method := range s.Stats().Methods {
		if !strings.HasPrefix(method, "Fail.") {
			continue
		}
		refused = nil
		_, err := call(context.Background(), c, method, "")
		wantFault(t, err, anser.DataLoss, anser.Executed)
		if strings.HasPrefix(method, "Fail.Trailer") && (refused == nil || !strings.Contains(refused.Error(), "65536")) {
			t.Errorf("%s: SetTrailer: %v", method, refused)
		}
	}
	if st := s.Stats(); st.Accepted != 1 || st.Conns != 1 {
		t.Errorf("%d connections were needed", st.Accepted)
	}
}
