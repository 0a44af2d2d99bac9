package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/internal/printable"
	"github.com/anser-rpc/anser/internal/redact"
	"github.com/anser-rpc/anser/telemetry"
)

// Tag is the name of the tag of an instance in its registry with the address of the admin page of
// its process, such as "http://127.0.0.1:8971/". Commands that watch a whole system find pages by
// it.
const Tag = "admin"

// Reader reads the pages of other processes. It is safe for concurrent use.
type Reader struct {
	// Client makes the requests; nil means http.DefaultClient.
	Client *http.Client
	// Token is sent as the bearer token, if it is not empty.
	Token string
}

// maxDocument limits what a page may send.
const maxDocument = 16 << 20

// Document reads a page such as "all" or "methods?…" of the process whose page is at address, a
// URL or "host:port".
func (r *Reader) Document(ctx context.Context, address, page string) (*Document, error) {
	name, query, _ := strings.Cut(page, "?")
	return r.document(ctx, address, name, query)
}

// Figures reads what a program that polls needs: the process, methods without rates, servers,
// clients with the health of instances, and the latest 32 calls of both kinds. since is the State
// of the last document from the address, or "". The answer has the methods whose counters are
// different since then, and the parts that Changed names: all the rest is as it was. It has
// everything if its Since is "", for example because the process is a new one.
func (r *Reader) Figures(ctx context.Context, address, since string) (*Document, error) {
	query := ""
	if since != "" {
		query = "since=" + url.QueryEscape(since)
	}
	d, err := r.document(ctx, address, "figures", query)
	if err == nil && d.Since != "" && d.Since != since {
		return nil, fmt.Errorf("the admin page at %s answers for another state than %q", named(address), printable.Text(since))
	}
	return d, err
}

func (r *Reader) document(ctx context.Context, address, name, query string) (*Document, error) {
	answer, err := r.get(ctx, address, name+".json", query)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var d Document
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxDocument)).Decode(&d); err != nil {
		return nil, fmt.Errorf("%s is not an admin page: %w", named(address), err)
	}
	if d.Format != Format {
		return nil, fmt.Errorf("the admin page at %s has the format %d, and this program reads %d: use the same version of Anser", named(address), d.Format, Format)
	}
	for i := range d.Methods {
		for _, c := range d.Methods[i].Codes {
			if c.Times.Scale != telemetry.Scale {
				return nil, fmt.Errorf("the admin page at %s has histograms of the scale %d, and this program reads %d", named(address), c.Times.Scale, telemetry.Scale)
			}
		}
	}
	for _, list := range []*Calls{d.Failures, d.Slow, d.Trace} {
		if list != nil { // its readers need not look for null
			list.Calls = slices.DeleteFunc(list.Calls, func(c *telemetry.Call) bool { return c == nil })
		}
	}
	return &d, nil
}

// named returns the address of a page for errors: registries have it from others.
func named(address string) string { return printable.Text(redact.URLs(address)) }

// maxLine limits one call that a page sends.
const maxLine = 1 << 20

// Follow reads calls as they happen, and calls f for each, until ctx is done or the list ends. The
// query is that of calls.ndjson: see docs/observability.md. skipped is the number of calls so far
// that the list has left out.
func (r *Reader) Follow(ctx context.Context, address string, query url.Values, f func(c *telemetry.Call, skipped uint64)) error {
	answer, err := r.get(ctx, address, "calls.ndjson", query.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLine)
	skipped := uint64(0)
	for lines.Scan() {
		var line struct {
			telemetry.Call
			Skipped *uint64 `json:"skipped"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("%s sends no calls: %w", named(address), err)
		}
		if line.Skipped != nil {
			skipped = *line.Skipped
			continue
		}
		f(&line.Call, skipped)
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the admin page at %s: %w", named(address), err)
	}
	return ctx.Err()
}

func (r *Reader) get(ctx context.Context, address, page, query string) (*http.Response, error) {
	at, err := pageURL(address)
	if err != nil {
		return nil, err
	}
	at = at.JoinPath(page)
	at.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if r.Token != "" {
		request.Header.Set("Authorization", "Bearer "+r.Token)
	}
	client := r.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err // the address is said once, without what it must not show
		}
		return nil, fmt.Errorf("the admin page at %s does not answer: %w", named(address), err)
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return nil, fmt.Errorf("the admin page at %s: %s", named(address), printable.Text(strings.TrimSpace(string(text))))
	}
	return answer, nil
}

// pageURL returns the URL of a page.
func pageURL(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an address of an admin page: use host:port or a URL such as http://127.0.0.1:8971/", named(address))
	}
	return u, nil
}

// Difference returns the times of the calls of a method that ended between two documents of the
// same process, and how many of them failed. before may be nil.
func (m *Method) Difference(before *Method) (times telemetry.Histogram, failed uint64) {
	add := func(m *Method, apply func(*telemetry.Histogram)) uint64 {
		for i := range m.Codes {
			h := &m.Codes[i].Times
			apply(&telemetry.Histogram{Count: h.Count, Sum: h.Sum, First: h.First, Counts: h.Counts})
		}
		_, failed := m.calls()
		return failed
	}
	failed = add(m, times.Add)
	if before != nil {
		failed -= min(failed, add(before, times.Sub))
	}
	return times, failed
}
