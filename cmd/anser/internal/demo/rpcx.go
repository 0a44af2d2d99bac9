package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
)

// rpcxProgram is the program with a stock client and a stock server of rpcx. It is a program of its
// own, since the command would have all of rpcx's dependencies otherwise.
const rpcxProgram = "anser-demo-rpcx"

// The members of rpcx, by their names in the table.
const (
	rpcxServer = "rpcx-server"
	rpcxClient = "rpcx-client"
)

const (
	rpcxService = "Prices"
	rpcxBase    = "/rpcx"           // its layout in the registry
	rpcxLeast   = time.Second / 100 // between two calls, if the callers make as many as they can
)

// findRPCX returns the program with the members of rpcx, or "" if it is not there: it is next to
// the command, unless a file is named.
func findRPCX(named string) (string, error) {
	if named != "" {
		_, err := os.Stat(named)
		return named, err
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil //nits:ignore nilerr the demo runs without them
	}
	program := filepath.Join(filepath.Dir(self), rpcxProgram)
	if _, err := os.Stat(program); err != nil {
		return "", nil //nits:ignore nilerr likewise
	}
	return program, nil
}

// rpcxMembers are a stock server of rpcx, which a client of Anser calls, and a stock client, which
// calls through the gateway.
type rpcxMembers struct {
	figures *figures

	layout         *etcd.Registry // the registry in rpcx's layout
	server, client *child.Child
	prices         *anser.Client
	ending         chan struct{}
	ctx            context.Context // of the calls
	cancel         context.CancelFunc
	wg             sync.WaitGroup
}

// withRPCX starts the members of rpcx if their program is there. Without it they are none.
func (d *demo) withRPCX(ctx context.Context) (*rpcxMembers, error) {
	program, err := findRPCX(d.o.RPCX)
	if err != nil {
		return nil, fmt.Errorf("the program with the members of rpcx: %w", err)
	}
	if program == "" {
		d.tell(Event{Kind: "rpcx", Text: "no client and server of rpcx are among the members: make demo builds their program, and --rpcx names it"})
		return nil, nil
	}
	return d.startRPCX(ctx, program, d.address)
}

// startRPCX starts the members. address is that of the gateway.
func (d *demo) startRPCX(ctx context.Context, program, address string) (m *rpcxMembers, err error) {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	m = &rpcxMembers{figures: d.figures, ending: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			m.stop()
			err = fmt.Errorf("the members of rpcx: %w", err)
		}
	}()
	interval := rpcxLeast
	if d.o.Rate > 0 {
		interval = time.Duration(float64(time.Second) / d.o.Rate)
	}
	if m.server, err = d.fleet.group.StartProgram(program, nil, "serve"); err != nil {
		return m, err
	}
	var said ready
	if err := m.server.Ready(ctx, &said); err != nil {
		return m, err
	}
	if err := m.announce(ctx, d.store.member.Endpoint(), said.Address, d.watched.calls); err != nil {
		return m, err
	}
	if m.client, err = d.fleet.group.StartProgram(program, m.note, "call", address, interval.String()); err != nil {
		return m, err
	}
	if err := m.client.Ready(ctx, new(ready)); err != nil {
		return m, err
	}
	m.wg.Go(func() { m.call(interval) })
	d.mu.Lock()
	d.rpcx = []Row{
		{Service: rpcxService, Instance: rpcxServer, Address: said.Address, State: up},
		{Service: "arith", Instance: rpcxClient, State: up},
	}
	d.mu.Unlock()
	d.tell(Event{Kind: "rpcx", Text: fmt.Sprintf("a stock server at %s, in rpcx's layout in the registry, is called by a client of Anser; a stock client calls arith through the gateway", said.Address)})
	return m, nil
}

// announce puts the server into the registry as servers of rpcx are there, and dials it.
func (m *rpcxMembers) announce(ctx context.Context, endpoint, address string, measured anser.DialOption) (err error) {
	if m.layout, err = etcd.Dial([]string{endpoint}, etcd.RPCX(rpcxBase), etcd.TTL(leaseTTL), etcd.Logger(slog.New(slog.DiscardHandler))); err != nil {
		return err
	}
	in := registry.Instance{ID: rpcxServer, Service: rpcxService, Address: "rpcx://" + address}
	if err := m.layout.Register(ctx, in); err != nil {
		return err
	}
	target := "etcd+rpcx://" + endpoint + rpcxBase + "/" + rpcxService
	m.prices, err = anser.Dial(target, append(dialOptions(), measured, etcd.RPCXScheme(), protocols.RPCX())...)
	return err
}

// call calls the server until the members end.
func (m *rpcxMembers) call(interval time.Duration) {
	type order struct {
		Item  string
		Count int
	}
	type price struct{ Cents int }
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-m.ending:
			return
		case <-tick.C:
		}
		began := time.Now()
		in := &order{Item: strings.Repeat("x", 1+n%9), Count: n}
		out, err := anser.Call[price](m.ctx, m.prices, rpcxService+".Of", in)
		if m.ctx.Err() != nil {
			return
		}
		if want := 100 * len(in.Item) * n; err == nil && out.Cents != want {
			err = wrong("%s.Of costs %d, want %d", rpcxService, out.Cents, want)
		}
		m.figures.note(rpcxServer, time.Since(began), err)
	}
}

// note counts a call of the client.
func (m *rpcxMembers) note(line []byte) {
	var done struct {
		Micros int64  `json:"micros"`
		Error  string `json:"error"`
	}
	err := json.Unmarshal(line, &done)
	if err == nil && done.Error != "" {
		err = errors.New("a client of rpcx: " + done.Error)
	}
	m.figures.note(rpcxClient, time.Duration(done.Micros)*time.Microsecond, err)
}

// stop ends the members, and returns the error of a process that had ended by itself.
func (m *rpcxMembers) stop() error {
	if m == nil {
		return nil
	}
	var err error
	for name, process := range map[string]*child.Child{rpcxServer: m.server, rpcxClient: m.client} {
		if process == nil {
			continue
		}
		select {
		case <-process.Done():
			err = errors.Join(err, fmt.Errorf("%s has ended by itself: %w", name, process.Reason()))
		default:
		}
	}
	if m.client != nil {
		m.client.End(endGrace)
	}
	close(m.ending)
	late := time.AfterFunc(stopGrace, m.cancel)
	m.wg.Wait()
	late.Stop()
	m.cancel()
	if m.prices != nil {
		err = errors.Join(err, m.prices.Close())
	}
	if m.layout != nil {
		err = errors.Join(err, m.layout.Close())
	}
	if m.server != nil {
		m.server.End(endGrace)
	}
	return err
}
