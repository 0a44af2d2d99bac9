package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/simulate"
)

// pages answers with one of two documents of an instance in turns.
type pages struct {
	docs [2][]byte
	n    int
}

// RoundTrip implements http.RoundTripper.
func (p *pages) RoundTrip(r *http.Request) (*http.Response, error) {
	p.n++
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(p.docs[p.n%2])), Request: r}, nil
}

// BenchmarkReading is what the console takes to read a page of an instance with three methods and
// three clients, without the network.
func BenchmarkReading(b *testing.B) {
	s := simulate.New(simulate.Options{Services: 100, Instances: 10, Rate: 100, Base: "http://127.0.0.1:1/"})
	var p pages
	for i := range p.docs {
		data, err := json.Marshal(s.Document(3))
		if err != nil {
			b.Fatal(err)
		}
		p.docs[i] = data
	}
	reader := &admin.Reader{Client: &http.Client{Transport: &p}}
	one := newProcess("http://127.0.0.1:1/3/")
	b.SetBytes(int64(len(p.docs[0])))
	b.ReportAllocs()
	for b.Loop() {
		if one.read(context.Background(), reader); one.view.Error != "" {
			b.Fatal(one.view.Error)
		}
	}
}
