package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/TarsCloud/TarsGo/tars"

	"github.com/anser-rpc/anser/arena/peers/tars/benchmark"
	"github.com/anser-rpc/anser/arena/workload"
)

// object is the name of the servant.
const object = "Arena.Workload.WorkloadObj"

// configuration is the server's, which TarsGo takes from a file only. A goroutine for each request
// is TarsGo's default (maxroutine 0). Nagle's algorithm is its default too; with it a reply can
// wait for the acknowledgement of the one before, up to 40 ms.
const configuration = `<tars>
  <application>
    <server>
      app=Arena
      server=Workload
      logLevel=ERROR
      tcpnodelay=true
      gracedowntimeout=%d
      <WorkloadAdapter>
        endpoint=tcp -h %s -p %s -t 60000
        protocol=tars
        servant=%s
      </WorkloadAdapter>
    </server>
  </application>
</tars>
`

// stopTimeout is how long the server waits for calls and connections when it ends.
const stopTimeout = 100 * time.Millisecond

type servant struct{ o *workload.ServerOptions }

// Say implements benchmark.Servant.
func (s *servant) Say(_ context.Context, m *benchmark.Message) (*benchmark.Message, error) {
	s.o.Delay()
	m.Field1, m.Field2 = workload.AnswerField1, workload.AnswerField2
	return m, nil
}

// Add implements benchmark.Servant.
func (s *servant) Add(_ context.Context, a, b int32) (int32, error) {
	s.o.Delay()
	return a + b, nil
}

// serve serves until ctx ends, or the process gets SIGTERM: TarsGo listens to signals itself.
func serve(ctx context.Context, o *workload.ServerOptions) error {
	// TarsGo listens on its own, and says on the standard output when it cannot.
	l, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	if err := configure(o.Addr); err != nil {
		return err
	}
	quiet()
	tars.AddServantWithContext(new(benchmark.Workload), &servant{o}, object)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tars.Run()
	}()
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		if ctx.Err() != nil {
			return nil //nits:ignore nilerr the caller ended it
		}
		return errors.New("TarsGo ended the server: its reason is on the standard output")
	}
}

// configure has TarsGo read its configuration.
func configure(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "arena-tars-*.conf")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // read by then
	_, err = fmt.Fprintf(file, configuration, stopTimeout.Milliseconds(), host, port, object)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	tars.ServerConfigPath = file.Name()
	if len(tars.GetServerConfig().Adapters) != 1 {
		return fmt.Errorf("TarsGo does not understand the configuration in %s", file.Name())
	}
	return nil
}
