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

// page answers with everything at first, and then with what changes.
type page struct{ first, next []byte }

// RoundTrip implements http.RoundTripper.
func (p *page) RoundTrip(r *http.Request) (*http.Response, error) {
	data := p.first
	if r.URL.Query().Get("since") != "" {
		data = p.next
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(data)), Request: r}, nil
}

// readerOfPage reads the page of an instance with three methods and three clients without a
// network.
func readerOfPage(t testing.TB) (reader *admin.Reader, size int) {
	t.Helper()
	d := simulate.New(simulate.Options{Services: 100, Instances: 10, Rate: 100, Base: "http://127.0.0.1:1/"}).Document(3)
	var p page
	var err error
	d.State = "0000000000000004.1"
	if p.first, err = json.Marshal(d); err != nil {
		t.Fatal(err)
	}
	d.Since, d.Clients, d.Failures, d.Slow = d.State, nil, nil, nil
	d.Servers[0].Methods, d.Servers[0].Announcements = nil, nil
	if p.next, err = json.Marshal(d); err != nil {
		t.Fatal(err)
	}
	return &admin.Reader{Client: &http.Client{Transport: &p}}, len(p.next)
}

// BenchmarkReading is what the console takes to read a page, without the network.
func BenchmarkReading(b *testing.B) {
	reader, size := readerOfPage(b)
	one := newProcess("http://127.0.0.1:1/3/", 0)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if one.read(context.Background(), reader); one.view.Error != "" {
			b.Fatal(one.view.Error)
		}
	}
}

// A reading allocates for the methods that were called, and not for what is as before.
func TestAllocationsOfAReading(t *testing.T) {
	reader, _ := readerOfPage(t)
	one := newProcess("http://127.0.0.1:1/3/", 0)
	n := testing.AllocsPerRun(100, func() {
		if one.read(context.Background(), reader); one.view.Error != "" {
			t.Fatal(one.view.Error)
		}
	})
	if len(one.view.Clients) != 3 || len(one.view.Methods) != 6 {
		t.Errorf("%+v", one.view)
	}
	if most := 180.0; n > most {
		t.Errorf("%.0f allocations, at most %.0f", n, most)
	}
}
