package ansertest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
)

func TestCloseWriteLetsTheRestArrive(t *testing.T) {
	client, server := ansertest.Pipe()
	client.Write([]byte("last words"))
	client.CloseWrite()
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "last words" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	server.Write([]byte("answer")) // the other direction stays open
	server.Close()
	if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestCloseIsIdempotentAndEndsBlockedOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := ansertest.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := client.Write(make([]byte, 1<<20)); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
		synctest.Wait()
		client.Close()
		client.Close()
		wg.Wait()
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
		if err := client.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
		server.Close()
	})
}

func TestWriteBlocksOnAFullBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := ansertest.Pipe()
		message := make([]byte, 3*ansertest.DefaultBuffer+1)
		for i := range message {
			message[i] = byte(i % 251)
		}
		written := false
		go func() {
			client.Write(message)
			written = true
			client.CloseWrite()
		}()
		synctest.Wait()
		if written {
			t.Fatal("a write of three buffers did not wait for a reader")
		}
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, message) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := ansertest.Pipe()
		began := time.Now()
		client.SetReadDeadline(began.Add(30 * time.Second))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 30*time.Second {
			t.Fatalf("read ended after %v", d)
		}
		// After a deadline is removed, reads block again, and a new one ends a blocked read.
		client.SetReadDeadline(time.Time{})
		done := make(chan error)
		go func() {
			_, err := client.Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		client.SetReadDeadline(time.Now().Add(-time.Second))
		if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}

		client.SetDeadline(time.Now().Add(time.Second))
		n, err := client.Write(make([]byte, 2*ansertest.DefaultBuffer))
		if n != ansertest.DefaultBuffer || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(n, err)
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("%T is not a timeout", err)
		}
		client.Close()
	})
}

// A deadline that is replaced while its timer fires must not end the next operation.
func TestDeadlineReplacedAsItFires(t *testing.T) {
	client, server := ansertest.Pipe()
	defer client.Close()
	defer server.Close()
	for range 2000 {
		client.SetReadDeadline(time.Now().Add(time.Microsecond))
		client.SetReadDeadline(time.Time{})
		server.Write([]byte("x"))
		if _, err := client.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkPipe(b *testing.B) {
	client, server := ansertest.Pipe()
	defer client.Close()
	go func() {
		buf := make([]byte, 64)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			server.Write(buf[:n])
		}
	}()
	b.ReportAllocs()
	buf := make([]byte, 64)
	for b.Loop() {
		client.Write(buf)
		client.Read(buf)
	}
}
