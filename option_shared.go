package anser

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// sideOptions are the options that both sides have.
type sideOptions struct {
	keepaliveOptions
	log              *slog.Logger
	interceptors     []Interceptor
	codecs           []codec.Codec
	tls              *tls.Config
	maxMessage       int
	maxExpansion     int
	handshakeTimeout time.Duration
	streamWindow     int
	connWindow       int
	windowsGrow      bool
	idleTimeout      time.Duration // 0: none
	checksums        bool
	observers        *observers
	mistakes         []error           // invalid options
	origins          map[string]string // of options, by their names: see ServerOptionsOf
	made             uintptr           // where the program has made the side
}

// wants returns ok, and records a mistake if it is false.
func (o *sideOptions) wants(ok bool, format string, args ...any) bool {
	if !ok {
		o.mistakes = append(o.mistakes, fmt.Errorf(format, args...))
	}
	return ok
}

func defaultSideOptions() sideOptions {
	return sideOptions{
		log: slog.Default(), maxMessage: 4 << 20, maxExpansion: defaultExpansion, handshakeTimeout: 5 * time.Second,
		keepaliveOptions: keepaliveOptions{keepaliveIdle: 30 * time.Second, keepaliveAnswer: 10 * time.Second, writeStall: 10 * time.Second},
		streamWindow:     int(wire.DefaultSettings().StreamWindow), connWindow: int(wire.DefaultSettings().ConnWindow), windowsGrow: true,
	}
}

type sideOption func(*sideOptions)

type idempotentOption struct{}
