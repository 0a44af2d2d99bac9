package servers

import (
	"bytes"
	"errors"
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
)

// run runs a server until the test ends. serves returns why it does not serve yet.
func run(t testing.TB, cmd *exec.Cmd, serves func() error) {
	t.Helper()
	p := new(Process)
	t.Cleanup(p.Stop)
	cmd.Dir = t.TempDir()
	p.Start(t, cmd, serves)
}

// says checks that a server answers a line with a text that contains the word.
func says(address, line, word string) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, line); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	text, err := io.ReadAll(conn)
	if !bytes.Contains(text, []byte(word)) {
		return fmt.Errorf("it answers %q with %q: %w", line, text, err)
	}
	return nil
}

// answers checks that a request is answered with one of the status codes.
func answers(method, url string, codes ...int) error {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for _, code := range codes {
		if resp.StatusCode == code {
			return nil
		}
	}
	return errors.New(resp.Status)
}

// Redis runs a Redis with additional arguments until the end of a test and returns its address.
func Redis(t testing.TB, args ...string) string {
	t.Helper()
	port := Ports(t, 1)
	run(t, exec.Command("redis-server", append([]string{"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--save", ""}, args...)...),
		func() error {
			err := says(local(port), "PING\r\n", "PONG")
			if err != nil {
				err = says(local(port), "PING\r\n", "NOAUTH") // it serves clients that log in
			}
			return err
		})
	return local(port)
}

// ZooKeeper runs a ZooKeeper until the end of a test and returns its address.
func ZooKeeper(t testing.TB) string {
	t.Helper()
	port, dir := Ports(t, 1), t.TempDir()
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=200\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
		filepath.ToSlash(dir), port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, exec.Command("java", "-Xmx128m", "-Dzookeeper.forceSync=no", "-cp", "/usr/share/java/zookeeper.jar",
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config),
		func() error { return says(local(port), "srvr", "Mode: standalone") })
	return local(port)
}

// Consul runs a Consul, agent and server in one, with additional configuration, until the end of a
// test and returns its address.
func Consul(t testing.TB, config ...string) string {
	t.Helper()
	port := Ports(t, 5)
	ports := fmt.Sprintf("ports { http = %d, server = %d, serf_lan = %d, serf_wan = %d, dns = %d, grpc = -1, grpc_tls = -1 }",
		port, port+1, port+2, port+3, port+4)
	args := []string{"agent", "-server", "-bootstrap", "-bind", "127.0.0.1", "-client", "127.0.0.1", "-data-dir", t.TempDir()}
	for _, line := range append([]string{ports, "performance { raft_multiplier = 1 }", "disable_update_check = true"}, config...) {
		args = append(args, "-hcl", line)
	}
	run(t, exec.Command(Find(t, "consul-1.15.0/consul"), args...),
		// A consistent read waits until this server leads. It may then be denied.
		func() error {
			return answers(http.MethodGet, "http://"+local(port)+"/v1/kv/none?consistent", http.StatusNotFound, http.StatusForbidden)
		})
	return local(port)
}

// Nacos runs the naming service of Nacos until the end of a test and returns its address.
func Nacos(t testing.TB) string {
	t.Helper()
	port, dir := Ports(t, 1), t.TempDir()
	run(t, exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"--add-opens", "java.base/java.lang=ALL-UNNAMED", // Spring of 2018 needs access to the class loader
		"-Duser.home="+dir, "-Dnacos.home="+dir, "-Dnacos.standalone=true", "-Dnacos.server.ip=127.0.0.1",
		fmt.Sprintf("-Dserver.port=%d", port), "-Dserver.address=127.0.0.1",
		"-cp", filepath.Join(Find(t, "nacos-naming-0.8.0"), "*"), "com.alibaba.nacos.naming.NamingApp"),
		func() error {
			return answers(http.MethodPost, "http://"+local(port)+"/nacos/v1/ns/instance?serviceName=ready&ip=127.0.0.1&port=1", http.StatusOK)
		})
	return local(port)
}

// Prometheus runs a Prometheus with a configuration until the end of a test and returns its URL.
// The features are those of its flag.
func Prometheus(t testing.TB, config string, features ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := Address(t)
	run(t, exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen,
		"--log.level=warn", "--enable-feature="+strings.Join(features, ",")),
		func() error { return answers(http.MethodGet, "http://"+listen+"/-/ready", http.StatusOK) })
	return "http://" + listen
}
