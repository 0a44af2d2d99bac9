package kubernetes_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/kubernetes"
)

// all is the test that includes all others.
var all testing.TB

func TestMain(m *testing.M) { servers.Main(m, func(t testing.TB) { all = t }) }

// cluster is a namespace used by a single test, on a server that any test may stop and start
// again.
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

// realServer is true if tests run on a real API server: make test-k8s.
var realServer = os.Getenv("ANSER_TEST_KUBERNETES") != ""

var namespaces atomic.Int64

// newCluster returns a cluster on the real server if that is configured, otherwise on one inside
// the process.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	namespace := fmt.Sprintf("test-%d", namespaces.Add(1))
	if realServer {
		return sharedServer().cluster(t, namespace)
	}
	s := newFakeServer(t)
	all := s.config()
	return &cluster{server: s, inside: true, namespace: namespace, registrar: all, client: all, admin: all}
}

// dial returns a registry that is closed at the end of the test.
func (c *cluster) dial(t *testing.T, as *rest.Config, opts ...kubernetes.Option) *kubernetes.Registry {
	t.Helper()
	r, err := kubernetes.Dial(append([]kubernetes.Option{kubernetes.Config(as), kubernetes.Namespace(c.namespace)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func has(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
