package report_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a browser without a window that is driven over two pipes, with its DevTools
// protocol: a few messages in JSON, which need no library.
type chromium struct {
	t    *testing.T
	send *os.File

	mu      sync.Mutex // guards what follows
	next    int
	waiting map[int]chan message
	tabs    map[string]*tab // by session
	closed  bool
}

// message is a call, a reply or an event of the protocol. Each ends with a zero byte.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// patience is for machines that do much else at the same time.
const patience = 90 * time.Second

// startChromium starts the browser, and ends it with the test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("chromium is missing: apt-get install -y --no-install-recommends chromium, or leave this test out with go test -short")
	}
	profile, err := os.MkdirTemp("", "arena-report-")
	if err != nil {
		t.Fatal(err)
	}
	theirs, send := pipe(t)
	receive, answers := pipe(t)
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--user-data-dir="+profile,
		"--no-sandbox", // the page is our own, and containers have no other sandbox to give
		"--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update")
	cmd.ExtraFiles = []*os.File{theirs, answers} // 3 and 4, where the browser looks for them
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	_ = answers.Close()
	b := &chromium{t: t, send: send, waiting: make(map[int]chan message), tabs: make(map[string]*tab)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.receive(receive) // ends with the browser, which closes the pipe
	}()
	t.Cleanup(func() {
		stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_, _ = b.try("", "Browser.close", nil)
		if err := cmd.Wait(); err != nil && t.Failed() {
			t.Logf("chromium: %v\n%s", err, stderr.String())
		}
		stop.Stop()
		_ = send.Close()
		<-read
		_ = receive.Close()
		_ = os.RemoveAll(profile) // a helper process of the browser may still be writing
	})
	return b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// receive hands out replies and events until the browser ends.
func (b *chromium) receive(from *os.File) {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		if reply := b.waiting[m.ID]; m.ID != 0 && reply != nil {
			delete(b.waiting, m.ID)
			reply <- m
		}
		if tab := b.tabs[m.Session]; m.ID == 0 && tab != nil {
			tab.event(&m)
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	b.closed = true
	for _, reply := range b.waiting {
		close(reply)
	}
	b.waiting = nil
	b.mu.Unlock()
}

// try calls a method and waits for its reply.
func (b *chromium) try(session, method string, params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	if params == nil {
		raw = nil
	}
	reply := make(chan message, 1)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, fmt.Errorf("%s: the browser has ended", method)
	}
	b.next++
	call := message{ID: b.next, Session: session, Method: method, Params: raw}
	b.waiting[call.ID] = reply
	b.mu.Unlock()
	line, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	if _, err := b.send.Write(append(line, 0)); err != nil {
		return nil, err
	}
	select {
	case m, ok := <-reply:
		if !ok {
			return nil, fmt.Errorf("%s: the browser has ended", method)
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no reply for %v", method, patience)
	}
}

// call is try for a test that cannot go on without.
func (b *chromium) call(session, method string, params any) json.RawMessage {
	b.t.Helper()
	result, err := b.try(session, method, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// tab is a page that was opened, with what went wrong in it.
type tab struct {
	t       *testing.T
	b       *chromium
	session string
	address string
	loaded  chan struct{} // has something when the page was loaded

	mu       sync.Mutex // guards what follows; taken while the browser's is held, so never hold it in a call
	troubles []string
}

type params map[string]any

// open opens an address in a window of a size, in light or dark colours.
func (b *chromium) open(t *testing.T, address string, width, height int, scheme string) *tab {
	t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	decode(t, b.call("", "Target.createTarget", params{"url": "about:blank"}), &target)
	var attached struct {
		Session string `json:"sessionId"`
	}
	decode(t, b.call("", "Target.attachToTarget", params{"targetId": target.ID, "flatten": true}), &attached)
	p := &tab{t: t, b: b, session: attached.Session, address: address, loaded: make(chan struct{}, 1)}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(domain+".enable", nil)
	}
	p.call("Emulation.setDeviceMetricsOverride", params{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	p.call("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}})
	p.call("Page.navigate", params{"url": address})
	select {
	case <-p.loaded:
	case <-time.After(patience):
		t.Fatalf("%s was not loaded within %v", address, patience)
	}
	t.Cleanup(func() { b.call("", "Target.closeTarget", params{"targetId": target.ID}) })
	return p
}

func decode(t *testing.T, raw json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// event notes what must not happen in a page that loads nothing and has no mistakes.
func (p *tab) event(m *message) {
	trouble := ""
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case "Network.requestWillBeSent":
		var sent struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		_ = json.Unmarshal(m.Params, &sent)
		if page, _, _ := strings.Cut(p.address, "#"); sent.Request.URL != page {
			trouble = "it asked for " + sent.Request.URL
		}
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening":
		trouble = m.Method + ": " + string(m.Params)
	}
	if trouble != "" {
		p.mu.Lock()
		p.troubles = append(p.troubles, trouble)
		p.mu.Unlock()
	}
}

func (p *tab) call(method string, arguments any) json.RawMessage {
	p.t.Helper()
	result, err := p.b.try(p.session, method, arguments)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// value evaluates an expression in the page into a value.
func (p *tab) value(expression string, into any) {
	p.t.Helper()
	var reply struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string          `json:"text"`
			Exception json.RawMessage `json:"exception"`
		} `json:"exceptionDetails"`
	}
	decode(p.t, p.call("Runtime.evaluate", params{"expression": expression, "returnByValue": true, "awaitPromise": true}), &reply)
	if reply.Exception != nil {
		p.t.Fatalf("%s: %s %s", expression, reply.Exception.Text, reply.Exception.Exception)
	}
	if into != nil {
		decode(p.t, reply.Result.Value, into)
	}
}

func (p *tab) strings(expression string) []string {
	p.t.Helper()
	var found []string
	p.value(expression, &found)
	return found
}

func (p *tab) text(expression string) string {
	p.t.Helper()
	var found string
	p.value("String("+expression+")", &found)
	return found
}

// click presses and lets go of the mouse in the middle of an element.
func (p *tab) click(selector string) {
	p.t.Helper()
	var at struct{ X, Y float64 }
	p.value(fmt.Sprintf(`(() => {
		const node = document.querySelector(%q);
		node.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
		const box = node.getBoundingClientRect();
		return { X: box.left + box.width / 2, Y: box.top + box.height / 2 };
	})()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.call("Input.dispatchMouseEvent", params{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// press presses a key that writes nothing.
func (p *tab) press(key string) {
	p.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		p.call("Input.dispatchKeyEvent", params{"type": kind, "key": key, "code": key})
	}
}

// write types text where the focus is.
func (p *tab) write(text string) {
	p.t.Helper()
	p.call("Input.insertText", params{"text": text})
}

// fine fails the test when anything went wrong in the page.
func (p *tab) fine() {
	p.t.Helper()
	if ready, errors := p.text("document.documentElement.dataset.ready"), p.text("document.documentElement.dataset.errors"); ready != "true" || errors != "0" {
		p.t.Errorf("%s: ready is %s, and there are %s errors", p.address, ready, errors)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, trouble := range p.troubles {
		p.t.Errorf("%s: %s", p.address, trouble)
	}
}
