package change_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/route"
)

// begin sends a request up to its body, which the returned function sends. The console has let the
// request through by then: it asks for the body.
func (v *viewer) begin(method, path, body string) (rest func() (status int, text string)) {
	v.t.Helper()
	at := strings.TrimPrefix(v.site.URL, "http://")
	c, err := net.Dial("tcp", at)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { c.Close() })
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.site.URL+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, cookie := range v.Jar.Cookies(r.URL) {
		r.AddCookie(cookie)
	}
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n", method, path, at)
	fmt.Fprintf(c, "X-Csrf-Token: %s\r\nCookie: %s\r\nContent-Length: %d\r\n\r\n", v.csrf, r.Header.Get("Cookie"), len(body))
	answers := bufio.NewReader(c)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		v.t.Fatalf("%s %s: %q, %v", method, path, line, err)
	}
	answers.ReadString('\n') //nits:ignore errcheck the empty line
	return func() (int, string) {
		v.t.Helper()
		if _, err := io.WriteString(c, body); err != nil {
			v.t.Fatal(err)
		}
		answer, err := http.ReadResponse(answers, r)
		if err != nil {
			v.t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			v.t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
}

// A request whose body comes after the end of the session changes nothing: a user could keep some
// open until after the logout, or after the removal from the file.
func TestChangesAfterTheSession(t *testing.T) {
	reg := registry.NewMemory()
	serve(t, reg, "one", "1.0")
	awaitInstances(t, reg, 1)
	file := accesstest.Users(t)
	s := start(t, reg, access.Options{Users: file})
	for name, end := range map[string]func(v *viewer){
		"operate": func(v *viewer) { v.expect(204, "POST", "/api/logout", "", nil) },
		"administer": func(*viewer) {
			other := s.viewer("administer")
			if err := access.RemoveUser(file, "administer"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the file is read again", func() bool {
				status, _ := other.send("GET", "/api/audit", "")
				return status == 401
			})
		},
	} {
		v := s.viewer(name)
		var rest []func() (int, string)
		for _, q := range []struct{ method, path, body string }{
			{"POST", "/api/instances", `{"service":"arith","instance":"one","state":"disabled"}`},
			{"PUT", "/api/rules/arith", `{"text":"rules: {}"}`},
			{"POST", "/api/canary", `{"service":"arith","version":"2.0","share":10,"bounds":{"errors":0.1}}`},
			{"POST", "/api/faultinjection", `{"service":"arith","share":10,"code":"internal","until":"` + soon() + `"}`},
			{"POST", "/api/call", `{"service":"arith","method":"Arith.Echo"}`},
		} {
			rest = append(rest, v.begin(q.method, q.path, q.body))
		}
		end(v)
		for i, send := range rest {
			if status, text := send(); status != 401 {
				t.Errorf("request %d of %s: %d %s", i, name, status, text)
			}
		}
	}
	if d, err := route.Load(t.Context(), s.registry, "arith"); err != nil || d.Version != 0 {
		t.Errorf("the rules are %+v, %v", d, err)
	}
	if sum, err := audit.Verify(s.log, ""); err != nil || sum.Entries != 0 {
		t.Errorf("the audit log: %+v, %v", sum, err)
	}
}

// Streams that wait for their viewer, or for its first line, end with the session.
func TestStreamsEndWithTheSession(t *testing.T) {
	reg := registry.NewMemory()
	serve(t, reg, "one", "1.0")
	awaitInstances(t, reg, 1)
	s := start(t, reg, access.Options{Users: accesstest.Users(t)})
	v := s.viewer("operate")
	type stream struct {
		send   *io.PipeWriter
		answer chan *http.Response
	}
	open := func(first string) stream {
		body, send := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/call/stream", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-CSRF-Token", v.csrf)
		st := stream{send, make(chan *http.Response, 1)}
		t.Cleanup(func() { send.Close() })
		go func() {
			defer close(st.answer)
			answer, err := v.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			st.answer <- answer
		}()
		if first != "" {
			if _, err := io.WriteString(send, first); err != nil {
				t.Fatal(err)
			}
		}
		return st
	}
	talks := open(`{"service":"arith","method":"Arith.Talk"}{"Text":"hello"}`)
	answer := <-talks.answer
	lines := bufio.NewReader(answer.Body)
	defer answer.Body.Close()
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "hello") {
		t.Fatalf("%q, %v", line, err)
	}
	waits := open(" ")
	eventually(t, "both streams are open", func() bool { return v.site.open.Load() >= 2 })
	v.expect(204, "POST", "/api/logout", "", nil)
	rest, err := io.ReadAll(lines) // it ends, although the viewer has not closed its side
	if err != nil || !strings.Contains(string(rest), `"end"`) {
		t.Errorf("the open stream: %q, %v", rest, err)
	}
	if answer := <-waits.answer; answer != nil {
		answer.Body.Close()
		if answer.StatusCode != 401 {
			t.Errorf("the stream that had no first line: %d", answer.StatusCode)
		}
	}
}
