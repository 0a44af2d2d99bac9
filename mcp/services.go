package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/introspect"
	"github.com/anser-rpc/anser/internal/rawjson"
)

// Services is a [Source] of the methods of services that clients call. It asks the services what
// they serve.
type Services struct {
	// Names returns the names of the services. With one name the methods go by their own names,
	// otherwise the service is in front of them.
	Names func(ctx context.Context) ([]string, error)
	// Dial returns a client of a service, which Close closes.
	Dial func(ctx context.Context, name string) (*anser.Client, error)
	// Single says that there is one service at all times.
	Single bool
	// Metadata is sent with each call.
	Metadata anser.Metadata
	// Logger gets services that do not say what they serve; nil means slog.Default().
	Logger *slog.Logger

	mu       sync.Mutex // guards the fields below
	services map[string]*service
	closed   bool
}

// service is one of the services.
type service struct {
	mu      sync.Mutex // held while the service is asked; guards the fields below
	client  *anser.Client
	asked   time.Time
	list    []anser.MethodInfo // of which methods were made
	methods []*Method
	silent  string // the error that was logged last
}

const (
	askEvery   = 5 * time.Second // a list that is younger is not asked for again
	askTimeout = 5 * time.Second
)

// Methods implements [Source]. A service that does not answer keeps the methods that it had.
func (s *Services) Methods(ctx context.Context) ([]*Method, error) {
	names, err := s.Names(ctx)
	if err != nil {
		return nil, err
	}
	var (
		wait sync.WaitGroup
		all  = make([][]*Method, len(names))
	)
	for i, name := range names {
		wait.Go(func() { all[i] = s.methods(ctx, name) })
	}
	wait.Wait()
	var list []*Method
	for _, of := range all {
		list = append(list, of...)
	}
	return list, nil
}

// service returns a service, or nil after Close.
func (s *Services) service(name string) *service {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.services == nil {
		s.services = make(map[string]*service)
	}
	of := s.services[name]
	if of == nil {
		of = new(service)
		s.services[name] = of
	}
	return of
}

var errClosed = errors.New("the source is closed")

// ClientOf returns the client of the service of a method.
func (s *Services) ClientOf(ctx context.Context, m *Method) (*anser.Client, error) {
	name := m.Service
	if s.Single {
		names, err := s.Names(ctx)
		if err != nil {
			return nil, err
		}
		name = names[0]
	}
	of := s.service(name)
	if of == nil {
		return nil, errClosed
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	return s.clientLocked(ctx, of, name)
}

func (s *Services) clientLocked(ctx context.Context, of *service, name string) (*anser.Client, error) {
	if of.client == nil {
		c, err := s.Dial(ctx, name)
		if err != nil {
			return nil, err
		}
		of.client = c
	}
	return of.client, nil
}

func (s *Services) methods(ctx context.Context, name string) []*Method {
	of := s.service(name)
	if of == nil {
		return nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if !of.asked.IsZero() && time.Since(of.asked) < askEvery {
		return of.methods
	}
	err := s.askLocked(ctx, of, name)
	of.asked = time.Now()
	if err != nil && ctx.Err() == nil && err.Error() != of.silent {
		of.silent = err.Error()
		s.logger().Warn("mcp: a service does not say what it serves", "service", name, "error", err)
	}
	return of.methods
}

func (s *Services) logger() *slog.Logger {
	if s.Logger != nil {
		return s.Logger
	}
	return slog.Default()
}

func (s *Services) askLocked(ctx context.Context, of *service, name string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c, err := s.clientLocked(ctx, of, name)
	if err != nil {
		return err
	}
	list, err := introspect.Methods(ctx, c)
	if err != nil {
		return err
	}
	if of.list != nil && reflect.DeepEqual(list, of.list) {
		return nil
	}
	contracts, err := introspect.Contracts(ctx, c, list)
	if err != nil {
		return err
	}
	of.list, of.methods, of.silent = list, s.methodsOf(name, list, contracts), ""
	return nil
}

// methodsOf returns methods with their contracts. Methods without one are left out.
func (s *Services) methodsOf(name string, list []anser.MethodInfo, contracts map[string]*anser.ContractReply) []*Method {
	var methods []*Method
	for i := range list {
		m := &list[i]
		service, _ := introspect.SplitName(m.Name)
		reply := contracts[service]
		if reply == nil || m.Contract == contract.FlatBuffers {
			continue // its messages are not in JSON
		}
		made := &Method{Name: m.Name, Contract: reply.Schema, Idempotent: m.Idempotent}
		if !s.Single {
			made.Service = name
		}
		methods = append(methods, made)
	}
	return methods
}

// Call implements [Source].
func (s *Services) Call(ctx context.Context, m *Method, message json.RawMessage, each func(json.RawMessage) error) (json.RawMessage, error) {
	c, err := s.ClientOf(ctx, m)
	if err != nil {
		return nil, err
	}
	if len(s.Metadata) > 0 {
		ctx = anser.WithMetadata(ctx, s.Metadata)
	}
	if each != nil {
		return nil, stream(ctx, c, m.Name, message, each)
	}
	opts := []anser.CallOption{anser.Codec(rawjson.Codec{})}
	if about := m.about(); about != nil && about.Oneway {
		return nil, c.Send(ctx, m.Name, &message, opts...)
	}
	if m.Idempotent {
		opts = append(opts, anser.Idempotent())
	}
	var reply json.RawMessage
	err = c.Call(ctx, m.Name, &message, &reply, opts...)
	return reply, err
}

// stream opens a stream with one message, and receives those of the server.
func stream(ctx context.Context, c *anser.Client, method string, message json.RawMessage, each func(json.RawMessage) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := anser.OpenWith[json.RawMessage, json.RawMessage](ctx, c, method, &message, anser.Codec(rawjson.Codec{}))
	if err != nil {
		return err
	}
	defer st.Close()
	for {
		one, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(*one); err != nil {
			return err
		}
	}
}

// Close closes the clients. Calls that run fail.
func (s *Services) Close() {
	s.mu.Lock()
	s.closed = true
	services := s.services
	s.mu.Unlock()
	for _, of := range services {
		of.mu.Lock()
		if of.client != nil {
			of.client.Close()
			of.client = nil
		}
		of.mu.Unlock()
	}
}
