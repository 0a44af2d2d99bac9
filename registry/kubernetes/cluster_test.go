package kubernetes_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/anser-rpc/anser/registry/kubernetes"
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) (code int) {
	code = m.Run()
	if shared != nil {
		shared.end()
	}
	if err := goleak.Find(); code == 0 && err != nil {
		log.Print(err)
		return 1
	}
	return code
}

// cluster is a namespace that no other test uses, on a server that all may stop and start again.
type cluster struct {
	server interface {
		stop()
		start()
	}
	inside    bool
	namespace string
	registrar *rest.Config // has the Role anser-registry of roles.yaml in the namespace
	client    *rest.Config // has the Role anser-client
	admin     *rest.Config // may do everything
}

// realServer says that tests run on a real API server: make test-k8s.
var realServer = os.Getenv("ANSER_TEST_KUBERNETES") != ""

var namespaces atomic.Int64

// newCluster returns a cluster on the real server where tests are asked to use it, and else on one inside the
// process.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	namespace := fmt.Sprintf("test-%d", namespaces.Add(1))
	if realServer {
		return sharedServer(t).cluster(t, namespace)
	}
	s := newFakeServer(t)
	all := s.config()
	return &cluster{server: s, inside: true, namespace: namespace, registrar: all, client: all, admin: all}
}

// dial opens a registry for the length of the test.
func (c *cluster) dial(t *testing.T, as *rest.Config, opts ...kubernetes.Option) *kubernetes.Registry {
	t.Helper()
	r, err := kubernetes.Dial(append([]kubernetes.Option{kubernetes.Config(as), kubernetes.Namespace(c.namespace)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// limit is how long a test waits for what comes at once on a machine that is not busy.
const limit = 2 * time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", limit, what)
		}
	}
}

func has(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
