package anser_test

import (
	"crypto/tls"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
)

// Options are values: they may be given to many clients at once.
func TestOptionsAreShared(t *testing.T) {
	config := &tls.Config{ServerName: "example"}
	opt := anser.TLS(config)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c, err := anser.Dial("127.0.0.1:1", opt, silent)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	wg.Wait()
	if config.MinVersion != 0 {
		t.Error("the caller's configuration was changed")
	}
}
