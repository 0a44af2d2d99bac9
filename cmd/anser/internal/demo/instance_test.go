package demo

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// An instance that ends while the registry is away has ended in order: the demo goes on.
func TestInstanceEndsWithoutRegistry(t *testing.T) {
	s, err := startStore(t.Context(), Options{Data: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	in, alive := io.Pipe()
	said, out := io.Pipe()
	var log strings.Builder
	ended := make(chan error, 1)
	go func() {
		o := InstanceOptions{"arith", "arith-1", usualVersion, "etcd://" + s.member.Endpoint(), filepath.Join(t.TempDir(), "calls"), ""}
		ended <- ServeInstance(ctx, o, in, out, &log)
	}()
	if _, err := bufio.NewReader(said).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	reg, err := s.member.Registry()
	if err != nil {
		t.Fatal(err)
	}
	if !poll(ctx, func() bool {
		names, err := reg.Services(ctx)
		return err == nil && len(names) == 1
	}) {
		t.Fatal("the instance is not registered")
	}
	reg.Close()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the instance ended with %v", err)
	}
	alive.Close()
	if !strings.Contains(log.String(), "drops the instance by itself") {
		t.Errorf("the log is %q", log.String())
	}
}
