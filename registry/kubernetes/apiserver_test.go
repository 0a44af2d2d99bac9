package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	mathrand "math/rand/v2"
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
)

// shared is the real API server, once a test has asked for it. Tests run one after the other, so that one may
// kill it.
var shared *apiServer

// apiServer is an etcd and a kube-apiserver in processes of their own. It authorizes by RBAC; the users are
// admin, registrar and client, and their tokens have the same names.
type apiServer struct {
	dir, binary   string
	address       string
	etcd, process *exec.Cmd
}

func sharedServer(t *testing.T) *apiServer {
	t.Helper()
	if shared != nil {
		return shared
	}
	binary, etcd := servers.Find(t, "kube-apiserver-1.36.3/kube-apiserver"), servers.Find(t, "kube-apiserver-1.36.3/etcd")
	dir, err := os.MkdirTemp("", "anser-kubernetes-")
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{dir: dir, binary: binary, address: freeAddress(t)}
	shared = s // also where it fails to start: then it is ended
	url, peer := "http://"+freeAddress(t), "http://"+freeAddress(t)
	s.etcd = exec.Command(etcd, "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--log-level", "error", "--unsafe-no-fsync")
	if err := s.etcd.Start(); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	s.write(t, "tokens.csv", []byte("admin,admin,1,system:masters\nregistrar,registrar,2\nclient,client,3\n"))
	s.write(t, "etcd-url", []byte(url))
	s.start()
	return s
}

func (s *apiServer) path(name string) string { return filepath.Join(s.dir, name) }

func (s *apiServer) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// start starts the API server and waits until it serves. It panics where it cannot: no test could go on.
func (s *apiServer) start() {
	etcd, err := os.ReadFile(s.path("etcd-url"))
	if err != nil {
		panic(err)
	}
	_, port, _ := net.SplitHostPort(s.address)
	out, err := os.Create(s.path("log"))
	if err != nil {
		panic(err)
	}
	defer out.Close()
	s.process = exec.Command(s.binary, "--etcd-servers", string(etcd), "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", s.path("certs"), "--token-auth-file", s.path("tokens.csv"), "--authorization-mode", "RBAC", "--anonymous-auth=false",
		"--service-account-key-file", s.path("key.pem"), "--service-account-signing-key-file", s.path("key.pem"),
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.0.0.0/24")
	s.process.Stdout, s.process.Stderr = out, out
	if err := s.process.Start(); err != nil {
		panic(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := s.do(http.MethodGet, "/readyz", "")
		if err == nil {
			return
		}
		text, _ := os.ReadFile(s.path("log"))
		if time.Now().After(deadline) || bytes.Contains(text, []byte("command failed")) {
			s.end()
			panic(fmt.Sprintf("kube-apiserver does not get ready: %v\n%s", err, text))
		}
	}
}

// stop kills it, as a crash would. etcd goes on.
func (s *apiServer) stop() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
		s.process = nil
	}
}

func (s *apiServer) end() {
	s.stop()
	if s.etcd != nil {
		s.etcd.Process.Kill()
		s.etcd.Wait()
	}
	os.RemoveAll(s.dir)
}

func (s *apiServer) config(user string) *rest.Config {
	return &rest.Config{Host: "https://" + s.address, BearerToken: user, TLSClientConfig: rest.TLSClientConfig{CAFile: s.path("certs/apiserver.crt")}}
}

// do makes a request as admin; a body is YAML.
func (s *apiServer) do(method, path, body string) (string, error) {
	web, err := rest.HTTPClientFor(s.config("admin"))
	if err != nil {
		return "", err
	}
	defer web.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
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

// cluster makes a namespace in which registrar and client have the roles of roles.yaml.
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

// awaitRoles waits until the server has heard of its own roles.
func awaitRoles(t *testing.T, c *cluster) {
	t.Helper()
	registrar, client := c.dial(t, c.registrar), c.dial(t, c.client)
	defer registrar.Close()
	defer client.Close()
	eventually(t, "roles count", func() bool {
		_, err1 := registrar.Load(within(t), "none")
		_, err2 := client.Services(within(t))
		return err1 == nil && err2 == nil
	})
}

// freeAddress returns an address below the range that the kernel hands out for other connections, so that a
// server which is started again finds its port free.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 26_000+mathrand.IntN(6_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}
