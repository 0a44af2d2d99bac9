package change_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
)

func TestCalls(t *testing.T) {
	s := system(t)
	v := s.viewer("")
	var answer struct {
		Reply   Echo
		Error   *struct{ Code, Message string }
		Outcome string
		Time    int64
		Copy    struct{ Curl, GRPCurl, Anser, Go string }
	}
	v.expect(200, "POST", "/api/call", `{"service":"arith","method":"Arith.Echo","instance":"two","request":{"Text":"it's"},"metadata":{"tenant":"blue"}}`, &answer)
	if answer.Reply.Text != "two it's" || answer.Reply.User != "this machine" || answer.Outcome != "ok" || answer.Time <= 0 {
		t.Errorf("the answer is %+v", answer)
	}
	if want := `anser call 'arith' 'Arith.Echo' '{"Text":"it'\''s"}' -H 'tenant:blue' --timeout 5s`; answer.Copy.Anser != want {
		t.Errorf("the command is %s, want %s", answer.Copy.Anser, want)
	}
	if !strings.Contains(answer.Copy.Curl, "/Arith/Echo'") || !strings.Contains(answer.Copy.GRPCurl, "'Arith/Echo'") || !strings.Contains(answer.Copy.Go, "tenant") {
		t.Errorf("to copy: %+v", answer.Copy)
	}
	v.expect(200, "POST", "/api/call", `{"service":"arith","method":"Arith.Echo","request":{"Text":"fail"}}`, &answer)
	if answer.Error == nil || answer.Error.Message != "there is no such text" || answer.Outcome != "executed" {
		t.Errorf("the answer is %+v", answer)
	}
	for _, bad := range []string{
		`{"service":"a b","method":"Arith.Echo"}`, `{"service":"arith"}`, `{"service":"arith","method":"Arith.Echo","timeout":-1}`,
		`{"service":"arith","method":"Arith.Echo","timeout":3600000000000}`,
		`{"service":"arith","method":"Arith.Echo","metadata":{"Console-User":"root"}}`, `{`, `{} {}`,
	} {
		v.expect(400, "POST", "/api/call", bad, nil)
	}
	v.expect(404, "POST", "/api/call", `{"service":"arith","method":"Arith.Echo","instance":"three"}`, nil)
	var list []audit.Entry
	v.expect(200, "GET", "/api/audit", "", &list)
	for _, e := range list {
		if strings.Contains(e.Text, "it's") {
			t.Errorf("the audit log has a message: %+v", e)
		}
	}
	if len(list) != 4 || list[0].Action != "call" || list[0].Subject != "Arith.Echo" {
		t.Errorf("the audit log has %+v", list)
	}
}

func TestStreams(t *testing.T) {
	v := system(t).viewer("")
	open := `{"service":"arith","method":"Arith.Talk"}` + "\n"
	text := v.expect(200, "POST", "/api/call/stream", open+`{"Text":"a"}`+"\n"+`{"Text":"b"}`+"\n", nil)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], `"Text":"b"`) || !strings.Contains(lines[2], `"outcome":"ok","sent":2,"received":2`) {
		t.Errorf("the answer is %s", text)
	}
	text = v.expect(200, "POST", "/api/call/stream", open+`{"Text":"a"}`+"\n{", nil)
	if !strings.Contains(text, "message 2 is not JSON") {
		t.Errorf("the answer is %s", text)
	}
	text = v.expect(200, "POST", "/api/call/stream", `{"service":"arith","method":"Arith.None"}`, nil)
	if !strings.Contains(text, `"outcome":"refused"`) {
		t.Errorf("the answer is %s", text)
	}
	v.expect(400, "POST", "/api/call/stream", "[]", nil)
}

func TestSchema(t *testing.T) {
	v := system(t).viewer("")
	var schema struct {
		Name, Kind string
		Request    struct{ JSON map[string]any }
	}
	v.expect(200, "GET", "/api/schema/arith/Arith.Talk", "", &schema)
	if schema.Name != "Arith.Talk" || schema.Kind != "stream" {
		t.Errorf("the schema is %+v", schema)
	}
	v.expect(200, "GET", "/api/schema/arith/Arith.Echo", "", &schema)
	if _, ok := schema.Request.JSON["Text"]; !ok || schema.Kind != "call" {
		t.Errorf("the schema is %+v", schema)
	}
	v.expect(404, "GET", "/api/schema/arith/Arith.None", "", nil)
}
