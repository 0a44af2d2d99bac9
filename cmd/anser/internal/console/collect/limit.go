package collect

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	// maxPage is the maximum size of a page in bytes. A page of 500 methods and as many recorded
	// calls has half of it.
	maxPage = 2 << 20
	// maxObjects is the maximum number of objects and lists on a page, since an empty one takes two
	// bytes of JSON and hundreds of memory.
	maxObjects = 40_000
)

// limited reads whole pages of limited size. Lists of live calls, which do not end, pass.
type limited struct {
	next http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err != nil || strings.HasSuffix(r.URL.Path, ".ndjson") {
		return answer, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, l.most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > l.most {
		return nil, fmt.Errorf("the page is larger than %d bytes", l.most)
	}
	if n := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte{'['}); n > maxObjects {
		return nil, fmt.Errorf("the page has %d objects and lists: at most %d", n, maxObjects)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}
