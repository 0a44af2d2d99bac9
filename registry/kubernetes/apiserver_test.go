package kubernetes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// shared is the real API server, started by the first test that needs it. Tests run one after the
// other, so a test may kill it.
var shared *apiServer

// apiServer runs an etcd and a kube-apiserver process. It authorizes by RBAC; the users are admin,
// registrar and client, and their tokens have the same names.
type apiServer struct {
	dir, binary   string
	address, etcd string
	process       servers.Process
}

func sharedServer() *apiServer {
	if shared != nil {
		return shared
	}
	t := all
	s := &apiServer{dir: t.TempDir(), binary: servers.Find(t, "kube-apiserver-1.36.3/kube-apiserver"), address: servers.Address(t), etcd: servers.Address(t)}
	url, peer := "http://"+s.etcd, "http://"+servers.Address(t)
	etcd := new(servers.Process)
	t.Cleanup(etcd.Stop)
	cmd := exec.Command(servers.Find(t, "kube-apiserver-1.36.3/etcd"), "--data-dir", s.path("etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--log-level", "error", "--unsafe-no-fsync")
	cmd.Dir = t.TempDir()
	etcd.Start(t, cmd, func() error {
		conn, err := net.Dial("tcp", s.etcd)
		if err == nil {
			conn.Close()
		}
		return err
	})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"key.pem":    pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		"tokens.csv": []byte("admin,admin,1,system:masters\nregistrar,registrar,2\nclient,client,3\n"),
	} {
		if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.stop)
	s.start()
	shared = s
	return s
}

// start starts the API server and waits until it serves.
func (s *apiServer) start() {
	_, port, _ := net.SplitHostPort(s.address)
	cmd := exec.Command(s.binary, "--etcd-servers", "http://"+s.etcd, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", s.path("certs"), "--token-auth-file", s.path("tokens.csv"), "--authorization-mode", "RBAC", "--anonymous-auth=false",
		"--service-account-key-file", s.path("key.pem"), "--service-account-signing-key-file", s.path("key.pem"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.0.0.0/24")
	cmd.Dir = s.dir
	s.process.Start(all, cmd, func() error {
		_, err := s.do(http.MethodGet, "/readyz", "")
		return err
	})
}

// stop kills the process, as in a crash. etcd continues.
func (s *apiServer) stop() { s.process.Stop() }

func (s *apiServer) path(name string) string { return filepath.Join(s.dir, name) }

func (s *apiServer) config(user string) *rest.Config {
	return &rest.Config{Host: "https://" + s.address, BearerToken: user, TLSClientConfig: rest.TLSClientConfig{CAFile: s.path("certs/apiserver.crt")}}
}

// do makes a request as admin; the body is YAML.
func (s *apiServer) do(method, path, body string) (string, error) {
	web, err := rest.HTTPClientFor(s.config("admin"))
	if err != nil {
		return "", err
	}
	defer web.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "https://"+s.address+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Close = true
	if body != "" {
		req.Header.Set("Content-Type", "application/yaml")
	}
	resp, err := web.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return string(text), err
}

// cluster creates a namespace in which registrar and client have the roles of roles.yaml.
func (s *apiServer) cluster(t *testing.T, namespace string) *cluster {
	t.Helper()
	make := func(path, yaml string) {
		t.Helper()
		if _, err := s.do(http.MethodPost, path, yaml); err != nil {
			t.Fatal(err)
		}
	}
	make("/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}")
	roles, err := os.ReadFile("roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rbac := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	for _, role := range strings.Split(string(roles), "---\n") {
		make(rbac+"/roles", role)
	}
	for _, user := range []string{"registrar", "client"} {
		role := map[string]string{"registrar": "anser-registry", "client": "anser-client"}[user]
		make(rbac+"/rolebindings", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: `+user+`},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: `+role+`},
			subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: `+user+`}]}`)
	}
	c := &cluster{server: s, namespace: namespace, registrar: s.config("registrar"), client: s.config("client"), admin: s.config("admin")}
	awaitRoles(t, c)
	return c
}

// awaitRoles waits until the server has loaded its own roles.
func awaitRoles(t *testing.T, c *cluster) {
	t.Helper()
	registrar, client := c.dial(t, c.registrar), c.dial(t, c.client)
	defer registrar.Close()
	defer client.Close()
	regtest.Eventually(t, regtest.Patience, "roles count", func() bool {
		_, err1 := registrar.Load(regtest.Within(t), "none")
		_, err2 := client.Services(regtest.Within(t))
		return err1 == nil && err2 == nil
	})
}
