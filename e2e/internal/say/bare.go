package say

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// bareSize is the length of a message of Bounce: that of a request of the workload.
const bareSize = 620

// ServeBare is Serve without RPC: a goroutine for each connection returns the bytes that arrive.
func ServeBare(commands io.Reader, answers io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- returnBytes(l) }()
	err = answerCommands(commands, answers, func() (Stat, error) {
		rss, err := residentBytes()
		return Stat{Addr: l.Addr().String(), CPU: cpuTime().Seconds(), RSS: rss}, err
	})
	return errors.Join(err, l.Close(), <-served)
}

func returnBytes(l net.Listener) error {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer nc.Close()
			buf := make([]byte, bareSize)
			for {
				if _, err := io.ReadFull(nc, buf); err != nil {
					return
				}
				if _, err := nc.Write(buf); err != nil {
					return
				}
			}
		}()
	}
}

// Bounce is Load without RPC: each caller exchanges messages over its own bare connection, as many
// as Load makes calls.
func Bounce(o Options) (Result, error) {
	conns := make([]net.Conn, o.Callers)
	for i := range conns {
		nc, err := net.Dial("tcp", o.Addr)
		if err != nil {
			return Result{}, err
		}
		defer nc.Close()
		conns[i] = nc
	}
	return together(o, func(i int) error { return bounce(conns[i], warmUps) }, func(i int) ([]time.Duration, error) {
		n := o.Calls / o.Callers
		mine := make([]time.Duration, 0, n)
		for range n {
			began := time.Now()
			if err := bounce(conns[i], 1); err != nil {
				return nil, err
			}
			mine = append(mine, time.Since(began))
		}
		return mine, nil
	})
}

func bounce(nc net.Conn, times int) error {
	var buf [bareSize]byte
	for range times {
		if _, err := nc.Write(buf[:]); err != nil {
			return err
		}
		if _, err := io.ReadFull(nc, buf[:]); err != nil {
			return err
		}
	}
	return nil
}

// together runs warm and then call for each caller, and returns what the calls took.
func together(o Options, warm func(i int) error, call func(i int) ([]time.Duration, error)) (Result, error) {
	latencies, errs := make([][]time.Duration, o.Callers), make([]error, o.Callers)
	var warming, wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range o.Callers {
		warming.Add(1)
		wg.Go(func() {
			errs[i] = warm(i)
			warming.Done()
			<-begin
			if errs[i] == nil {
				latencies[i], errs[i] = call(i)
			}
		})
	}
	warming.Wait()
	if o.Ready != nil {
		o.Ready()
	}
	began, cpu := time.Now(), cpuTime()
	close(begin)
	wg.Wait()
	elapsed, cpu := time.Since(began), cpuTime()-cpu
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	return resultOf(o.Calls/o.Callers*o.Callers, elapsed, cpu, latencies), nil
}
