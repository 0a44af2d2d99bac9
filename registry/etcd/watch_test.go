package etcd_test

import (
	"context"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestBrokenRecordsAreLeftOut(t *testing.T) {
	prefix, raw := freshPrefix(), shared.use(t)
	put := func(key, value string) {
		t.Helper()
		if _, err := raw.Put(t.Context(), prefix+"/arith/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	r := shared.dial(t, etcd.Prefix(prefix))
	put("junk", "{")
	w := regtest.NewWatch(t, r)
	w.ExpectTrouble(prefix + "/arith/junk")
	w.Expect("")
	regtest.Register(t, r, regtest.Instance("h1:1"))
	w.Expect("h1:1")
	put("h2:1", `{"service":"arith","address":"h1:1"}`)
	w.ExpectTrouble("move it there, or delete it")
	w.Expect("h1:1")
	put("h2:1", `{"service":"arith","address":"h2:1"}`)
	w.Expect("h1:1 h2:1")
	put("h2:1", `{"service":"arith","address":"h2"}`) // valid before: a broken record has no address
	w.ExpectTrouble("")
	w.Expect("h1:1")
}

// fakeEtcd answers lists and watches from a script, to produce sequences that are rare on a real
// server.
type fakeEtcd struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	lists   chan *pb.RangeResponse                               // one per list
	watches chan func(*pb.WatchCreateRequest, watchStream) error // one per watch
}

type watchStream = grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]

func (f *fakeEtcd) Range(ctx context.Context, _ *pb.RangeRequest) (*pb.RangeResponse, error) {
	select {
	case resp := <-f.lists:
		return resp, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeEtcd) Watch(stream watchStream) error {
	req, err := stream.Recv()
	if err != nil {
		return err
	}
	create := req.GetCreateRequest()
	if err := stream.Send(&pb.WatchResponse{Created: true}); err != nil {
		return err
	}
	select {
	case script := <-f.watches:
		return script(create, stream)
	case <-stream.Context().Done():
		return nil
	}
}

func startFake(t *testing.T) (*fakeEtcd, *etcd.Registry) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeEtcd{
		lists:   make(chan *pb.RangeResponse, 10),
		watches: make(chan func(*pb.WatchCreateRequest, watchStream) error, 10),
	}
	g := grpc.NewServer()
	pb.RegisterKVServer(g, f)
	pb.RegisterWatchServer(g, f)
	served := make(chan struct{})
	go func() { defer close(served); g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-served })
	r, err := etcd.Dial([]string{l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return f, r
}

func record(address string) *mvccpb.KeyValue {
	data, _ := registry.Encode(regtest.Instance(address))
	return &mvccpb.KeyValue{Key: []byte("/anser/arith/" + address), Value: data}
}

func list(revision int64, addresses ...string) *pb.RangeResponse {
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: revision}}
	for _, a := range addresses {
		resp.Kvs = append(resp.Kvs, record(a))
	}
	return resp
}

func TestCompactedWatchListsAgain(t *testing.T) {
	f, r := startFake(t)
	started := make(chan int64, 10)
	// Changes that arrive while a watcher is busy are merged, so each step waits for the update of
	// the previous one.
	told := make(chan struct{})
	await := func(s watchStream) {
		select {
		case <-told:
		case <-s.Context().Done():
		}
	}
	f.lists <- list(10, "h1:1", "h2:1")
	f.watches <- func(req *pb.WatchCreateRequest, s watchStream) error {
		started <- req.StartRevision
		await(s)
		return s.Send(&pb.WatchResponse{Canceled: true, CompactRevision: 20, CancelReason: "compacted"})
	}
	f.lists <- list(30, "h1:1", "h2:1") // nothing has changed: no update
	f.watches <- func(req *pb.WatchCreateRequest, s watchStream) error {
		started <- req.StartRevision
		return rpctypes.ErrGRPCNoLeader
	}
	f.lists <- list(40, "h2:1", "h3:1") // one removed and one added: one update with both
	f.watches <- func(req *pb.WatchCreateRequest, s watchStream) error {
		started <- req.StartRevision
		await(s)
		s.Send(&pb.WatchResponse{Events: []*mvccpb.Event{
			{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: record("h2:1").Key}},
			{Type: mvccpb.Event_PUT, Kv: record("h4:1")},
		}})
		await(s)
		return rpctypes.ErrGRPCNoLeader
	}
	f.lists <- list(5) // less than before: the present state counts
	w := regtest.NewWatch(t, r)
	for _, want := range []string{"h1:1 h2:1", "h2:1 h3:1", "h3:1 h4:1"} {
		w.Expect(want)
		select {
		case told <- struct{}{}:
		case <-time.After(regtest.Patience):
			t.Fatalf("nothing follows the list %q", want)
		}
	}
	w.Expect("")
	for _, want := range []int64{11, 31, 41} {
		if got := <-started; got != want {
			t.Errorf("watch from revision %d, want %d: the one after the list", got, want)
		}
	}
	w.NoTrouble()
}
