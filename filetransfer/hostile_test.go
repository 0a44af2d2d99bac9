package filetransfer_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

type object = map[string]any

// encoded returns the encoding of v.
func encoded(t *testing.T, v any) *[]byte {
	t.Helper()
	if b, ok := v.([]byte); ok {
		return &b
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

const someID = "0123456789abcdef0123456789abcdef"

// A client that violates the protocol gets an error, and leaves nothing behind.
func TestHostileClients(t *testing.T) {
	head := func(change object) object {
		h := object{"path": "a", "id": someID, "size": 100, "checksum": "sha256"}
		for k, v := range change {
			h[k] = v
		}
		return h
	}
	begin := object{"from": 0}
	for name, c := range map[string]struct {
		method   string
		messages []any // if there are several, the server answers the first one
		code     anser.Code
	}{
		"nothing":            {"File.Put", nil, anser.InvalidArgument},
		"no JSON":            {"File.Put", []any{[]byte{0xff}}, anser.InvalidArgument},
		"other types":        {"File.Put", []any{object{"size": "large"}}, anser.InvalidArgument},
		"head too long":      {"File.Put", []any{make([]byte, 1<<20)}, anser.InvalidArgument},
		"no id":              {"File.Put", []any{head(object{"id": ""})}, anser.InvalidArgument},
		"id is a path":       {"File.Put", []any{head(object{"id": "../../../../etc/passwd"})}, anser.InvalidArgument},
		"negative size":      {"File.Put", []any{head(object{"size": -1})}, anser.InvalidArgument},
		"unknown checksum":   {"File.Put", []any{head(object{"checksum": "md5"})}, anser.Unimplemented},
		"begins elsewhere":   {"File.Put", []any{head(nil), object{"from": 50}}, anser.InvalidArgument},
		"negative beginning": {"File.Put", []any{head(nil), object{"from": -1}}, anser.InvalidArgument},
		"too many bytes":     {"File.Put", []any{head(nil), begin, make([]byte, 101)}, anser.InvalidArgument},
		"empty message":      {"File.Put", []any{head(nil), begin, []byte{}}, anser.InvalidArgument},
		"message too long":   {"File.Put", []any{head(object{"size": 1 << 20}), begin, make([]byte, 1<<20)}, anser.InvalidArgument},
		"ends early":         {"File.Put", []any{head(nil), begin, make([]byte, 99)}, anser.InvalidArgument},
		"no sum":             {"File.Put", []any{head(nil), begin, make([]byte, 100)}, anser.InvalidArgument},
		"wrong sum":          {"File.Put", []any{head(nil), begin, make([]byte, 100), object{"sum": "00"}}, anser.DataLoss},
		"get nothing":        {"File.Get", nil, anser.InvalidArgument},
		"get no JSON":        {"File.Get", []any{[]byte("{")}, anser.InvalidArgument},
		"get no path":        {"File.Get", []any{object{"checksum": "sha256"}}, anser.InvalidArgument},
		"list nothing":       {"File.List", nil, anser.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			st, err := anser.Open[[]byte, []byte](within(t), s.client, c.method)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for i, m := range c.messages {
				st.Send(encoded(t, m)) // its error is also that of Recv
				if i == 0 && len(c.messages) > 1 {
					if _, err := st.Recv(); err != nil {
						t.Fatal(err)
					}
				}
			}
			st.CloseSend()
			for err == nil {
				_, err = st.Recv()
			}
			if c.method == "File.List" {
				wantList(t, err)
			} else {
				wantCode(t, err, c.code)
			}
			eventually(t, "the unfinished file was removed", func() bool { return len(s.parts()) == 0 })
			missing(t, filepath.Join(s.dir, "a"))
		})
	}
}

// wantList checks that a codec other than the type's is rejected, before or by the handler.
func wantList(t *testing.T, err error) {
	t.Helper()
	if anser.CodeOf(err) == anser.OK || anser.CodeOf(err) == anser.Unknown {
		t.Errorf("error: %v", err)
	}
}

// A client rejects the answers of a server that violates the protocol.
func TestHostileServers(t *testing.T) {
	state := func(size, from int64) object { return object{"size": size, "from": from, "tag": "t", "store": "s"} }
	for name, messages := range map[string][]any{
		"nothing":          nil,
		"no JSON":          {[]byte("x")},
		"negative size":    {state(-1, 0)},
		"begins elsewhere": {state(100, 50)},
		"ends early":       {state(100, 0), make([]byte, 50)},
		"too many bytes":   {state(100, 0), make([]byte, 101)},
		"empty message":    {state(100, 0), []byte{}},
		"huge":             {state(1<<62, 0), make([]byte, 100)},
		"no sum":           {state(100, 0), make([]byte, 100)},
		"wrong sum":        {state(100, 0), make([]byte, 100), object{"sum": "00"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHostile(t, "File.Get", messages)
			dir := t.TempDir()
			local := filepath.Join(dir, "local")
			if _, err := filetransfer.Get(within(t), s, "a", local, filetransfer.Resume()); err == nil {
				t.Error("Get believed it")
			}
			missing(t, local)
		})
	}
	for name, messages := range map[string][]any{
		"nothing":       nil,
		"no JSON":       {[]byte("x")},
		"has too much":  {object{"have": 1000}},
		"has less":      {object{"have": -1}},
		"ends early":    {object{"have": 0}},
		"wrong sum":     {object{"have": 0}, object{"sum": "00"}},
		"other prefix":  {object{"have": 2, "sum": "00"}},
		"not confirmed": {object{"have": 0}, []byte("x")},
	} {
		t.Run("put "+name, func(t *testing.T) {
			if err := put(t, newHostile(t, "File.Put", messages), "a"); err == nil {
				t.Error("Put believed it")
			}
		})
	}
}

// newHostile returns a client of a server that always sends these messages.
func newHostile(t *testing.T, method string, messages []any) *anser.Client {
	t.Helper()
	s := newSite(t, filetransfer.Named("Other"))
	server := anser.NewServer(silent)
	err := anser.HandleStream(server, method, func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
		if _, err := st.Recv(); err != nil {
			return err
		}
		for _, m := range messages {
			if err := st.Send(encoded(t, m)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	s.address = l.Addr().String()
	return s.dial()
}

// A link in place of the unfinished file is not followed.
func TestPartIsALink(t *testing.T) {
	s := newSite(t)
	data := content(100)
	part := filetransfer.PartOf("a", someID)
	s.write("precious", []byte("precious"))
	symlink(t, "precious", filepath.Join(s.dir, part))
	stream, err := anser.OpenWith[[]byte, []byte](within(t), s.client, "File.Put",
		encoded(t, object{"path": "a", "id": someID, "size": len(data), "checksum": "sha256"}))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	_, err = stream.Recv()
	wantCode(t, err, anser.FailedPrecondition, "not a file")
	s.want("precious", []byte("precious"))
}
