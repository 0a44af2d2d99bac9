package gateway_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

func awaitThat(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		time.Sleep(time.Millisecond)
	}
}

// A changed file is applied, at once when asked, and a mistake in it leaves the old one in force.
func TestFollowFile(t *testing.T) {
	file := write(t, t.TempDir()+"/g.yaml", "timeout: 1s")
	r := registry.NewMemory()
	c, err := gateway.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := start(t, r, c)
	ctx, stop := context.WithCancel(t.Context())
	again := make(chan os.Signal, 1)
	var wait sync.WaitGroup
	wait.Go(func() { g.FollowFile(ctx, file, again) })
	defer wait.Wait()
	defer stop()
	write(t, file, "timeout: 2s")
	awaitThat(t, "the new file is not in force", func() bool { return g.Stats().Reloads == 1 })
	write(t, file, "timeout: x")
	awaitThat(t, "the mistake is not refused", func() bool { return g.Stats().ReloadsRefused == 1 })
	again <- syscall.SIGHUP
	awaitThat(t, "a signal has no effect", func() bool { return g.Stats().ReloadsRefused == 2 })
	write(t, file, "timeout: 3s")
	again <- syscall.SIGHUP
	awaitThat(t, "the repaired file is not in force", func() bool { return g.Stats().Reloads >= 2 })
}

// A configuration in the registry is followed; of two that change it at once, one gets an error.
func TestFollowDocument(t *testing.T) {
	r := registry.NewMemory()
	g, _ := start(t, r, new(gateway.Config))
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := g.FollowDocument(ctx, r, "edge"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	defer wait.Wait()
	defer stop()
	if err := gateway.SaveDocument(t.Context(), r, "edge", 0, []byte("timout: 1s")); err == nil {
		t.Error("a mistake is saved")
	}
	if err := gateway.SaveDocument(t.Context(), r, "edge", 0, []byte("timeout: 1s")); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, "the document is not in force", func() bool { return g.Stats().Reloads == 1 })
	if err := gateway.SaveDocument(t.Context(), r, "edge", 0, []byte("timeout: 2s")); !errors.Is(err, registry.ErrConflict) {
		t.Error(err)
	}
	text, revision, ok, err := gateway.LoadDocument(t.Context(), r, "edge")
	if err != nil || !ok || string(text) != "timeout: 1s" {
		t.Fatalf("%s, %v, %v", text, ok, err)
	}
	if err := gateway.SaveDocument(t.Context(), r, "edge", revision, []byte("timeout: 2s")); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, "the second document is not in force", func() bool { return g.Stats().Reloads == 2 })
}
