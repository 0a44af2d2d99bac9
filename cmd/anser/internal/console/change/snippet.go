package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/internal/introspect"
)

// snippets are a call as a user may make it elsewhere. The addresses of curl and grpcurl are those
// of the instance, or a place for one.
type snippets struct {
	Curl    string `json:"curl"`
	GRPCurl string `json:"grpcurl"`
	Anser   string `json:"anser"`
	Go      string `json:"go"`
}

// quoted returns a text as one word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (c *Changes) snippets(q *callRequest) snippets {
	request, address := quoted(string(q.Request)), "HOST:PORT"
	service, method := introspect.SplitName(q.Method)
	var curl, grpcurl, anser, code strings.Builder
	for _, key := range slices.Sorted(maps.Keys(q.Metadata)) {
		pair := quoted(key + ": " + q.Metadata[key])
		fmt.Fprintf(&curl, " -H %s", pair)
		fmt.Fprintf(&grpcurl, " -H %s", pair)
		fmt.Fprintf(&anser, " -H %s", quoted(key+":"+q.Metadata[key]))
		fmt.Fprintf(&code, "ctx = anser.WithMetadata(ctx, anser.Metadata{%q: %q})\n", key, q.Metadata[key])
	}
	fmt.Fprintf(&code, "request, reply := json.RawMessage(%s), json.RawMessage(nil)\n", goText(string(q.Request)))
	fmt.Fprintf(&code, "err := client.Call(ctx, %q, &request, &reply, anser.Timeout(%d))", q.Method, q.Timeout)
	return snippets{
		Curl:    fmt.Sprintf("curl -H 'Content-Type: application/json'%s -d %s %s", curl.String(), request, quoted("http://"+address+"/"+service+"/"+method)),
		GRPCurl: fmt.Sprintf("grpcurl -plaintext%s -d %s %s %s", grpcurl.String(), request, address, quoted(service+"/"+method)),
		Anser:   fmt.Sprintf("anser call %s %s %s%s --timeout %v", quoted(c.d.Target(q.Service)), quoted(q.Method), request, anser.String(), q.Timeout),
		Go:      code.String(),
	}
}

// goText returns a text as a literal of Go, raw if it can be one.
func goText(s string) string {
	if strings.ContainsAny(s, "`\r") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}
