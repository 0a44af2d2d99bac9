package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

// addresses are what the server's process prints.
type addresses struct{ Anser, Bare string }

// serve serves the folder both ways until the standard input ends.
func serve(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	s := anser.NewServer(anser.NoSignals())
	if _, err := filetransfer.Serve(s, root); err != nil {
		return err
	}
	anser.Handle(s, "Echo.Bytes", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	anser.Handle(s, "Echo.CPU", func(context.Context, *anser.None) (*float64, error) {
		used := processorTime()
		return &used, nil
	})
	l, err := listen()
	if err != nil {
		return err
	}
	bare, err := listen()
	if err != nil {
		return err
	}
	go serveBare(bare, dir)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		bare.Close()
		s.Close()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(addresses{l.Addr().String(), bare.Addr().String()}); err != nil {
		return err
	}
	if err := s.Serve(l); !errors.Is(err, anser.ErrServerClosed) {
		return err
	}
	return nil
}

// processorTime returns the seconds of processor time that this process has used.
func processorTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// server is the server's process.
type server struct {
	cmd *exec.Cmd
	in  io.Closer
	at  addresses
}

func start(dir string) (*server, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(path, "process-server", dir)}
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in = in
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(out).Decode(&s.at); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) stop() error {
	s.in.Close()
	return s.cmd.Wait()
}
