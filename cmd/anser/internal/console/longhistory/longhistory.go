// Package longhistory asks Prometheus for figures of the time that the console does not keep.
package longhistory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/history"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
)

// Limits of a question.
const (
	askBound  = 5 * time.Second
	maxAnswer = 4 << 20 // bytes
	atOnce    = 8       // queries; each series has five of them
	maxPoints = 1000    // of a series
	maxSpan   = 400 * 24 * time.Hour
	minStep   = 10 * time.Second
	// rateOver is the least time over which rates are computed: it has a few scrapes.
	rateOver = 2 * time.Minute
)

// Source is a Prometheus. Its methods are safe for concurrent use.
type Source struct {
	at     string
	token  string
	client *http.Client
	slots  chan struct{}
}

// New returns a Prometheus by its URL, such as http://127.0.0.1:9090/. A token is sent as a bearer
// token; it may be empty. Nothing is asked yet.
func New(at, token string) (*Source, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a Prometheus: use for example http://127.0.0.1:9090/", at)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Source{strings.TrimRight(at, "/"), token, client, make(chan struct{}, atOnce)}, nil
}

// Close closes idle connections.
func (s *Source) Close() { s.client.CloseIdleConnections() }

// RangeError means that a range cannot be asked for.
type RangeError struct{ text string }

func (e *RangeError) Error() string { return e.text }

// Series returns the figures of a range, which must have both of its ends. A value is null where
// Prometheus knows nothing. A value covers at least two minutes before the end of its step.
func (s *Source) Series(ctx context.Context, key history.Key, r history.Range) (*model.Series, error) {
	span := r.To.Sub(r.From)
	if span <= 0 || span > maxSpan {
		return nil, &RangeError{fmt.Sprintf("the range from %s to %s is empty, or longer than %v", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), maxSpan)}
	}
	step := max(min(r.Step, span), minStep, (span+maxPoints-1)/maxPoints).Round(time.Second)
	from := r.From.UTC().Truncate(step)
	n := int((r.To.Sub(from) + step - 1) / step)
	out := &model.Series{From: from, Step: step, Source: model.OfPrometheus, Rate: make([]*float64, n), Failed: make([]*float64, n)}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, 5)
	ask := func(i int, query string, put func(i int, v float64)) {
		wg.Go(func() { errs[i] = s.ask(ctx, query, from, step, n, put) })
	}
	q := queriesOf(key, max(step, rateOver))
	ask(0, q.rate, func(i int, v float64) { out.Rate[i] = &v })
	ask(1, q.failed, func(i int, v float64) { out.Failed[i] = &v })
	for i, to := range []*[]*time.Duration{&out.P50, &out.P90, &out.P99} {
		*to = make([]*time.Duration, n)
		ask(2+i, q.quantile([...]float64{0.5, 0.9, 0.99}[i]), func(i int, v float64) {
			d := time.Duration(v * 1e9)
			(*to)[i] = &d
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// queries are the queries for a series.
type queries struct {
	rate, failed string
	times        string // a format, with the suffix of the name
}

// queriesOf returns the queries for a series. Instances have the labels that prometheus.Targets
// gives them.
func queriesOf(key history.Key, over time.Duration) queries {
	side, match := "server", fmt.Sprintf("service=%q", key.A)
	switch key.Kind {
	case history.OfMethod:
		match += fmt.Sprintf(",method=%q", key.B)
	case history.OfInstance:
		match += fmt.Sprintf(",id=%q", key.B)
	case history.OfEdge:
		side = "client"
		match += fmt.Sprintf(",target=~%q", ".*/"+regexp.QuoteMeta(key.B))
	}
	window := fmt.Sprintf("[%ds]", int(math.Ceil(over.Seconds())))
	calls := "anser_" + side + "_calls_total{" + match
	rate := "sum(rate(" + calls + "}" + window + "))"
	return queries{
		rate:   rate,
		failed: "sum(rate(" + calls + `,code!="OK"}` + window + ")) or " + rate + " * 0",
		times:  "anser_" + side + "_call_duration_seconds%s{" + strings.ReplaceAll(match, "%", "%%") + `,code=~"OK|DEADLINE_EXCEEDED"}` + window,
	}
}

// quantile asks for native histograms, and for classic ones where there are none.
func (q *queries) quantile(at float64) string {
	return fmt.Sprintf("histogram_quantile(%v, sum(rate("+q.times+"))) or histogram_quantile(%v, sum by (le) (rate("+q.times+")))", at, "", at, "_bucket")
}

// ask sends a query for n steps, and calls put for each value.
func (s *Source) ask(ctx context.Context, query string, from time.Time, step time.Duration, n int, put func(i int, v float64)) error {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return fmt.Errorf("the Prometheus has too many questions of the console: %w", ctx.Err())
	}
	form := url.Values{
		"query": {query}, "start": {stamp(from.Add(step))}, "end": {stamp(from.Add(time.Duration(n) * step))},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)}, "timeout": {askBound.String()},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.at+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("the Prometheus does not answer: %w", err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the Prometheus does not answer: %w", err)
	case len(data) > maxAnswer:
		return fmt.Errorf("the answer of Prometheus has more than %d bytes", maxAnswer)
	}
	return take(data, answer.StatusCode, from, step, n, put)
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// take takes the values of an answer. It has one series at most, as the queries have sums.
func take(data []byte, status int, from time.Time, step time.Duration, n int, put func(i int, v float64)) error {
	var doc struct {
		Status, Error string
		Data          struct {
			Result []struct{ Values [][2]json.RawMessage }
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil || doc.Status != "success" {
		return fmt.Errorf("the Prometheus answers with the status %d: %s", status, model.Text(doc.Error))
	}
	for _, series := range doc.Data.Result {
		for _, pair := range series.Values {
			var at float64
			var text string
			if json.Unmarshal(pair[0], &at) != nil || json.Unmarshal(pair[1], &text) != nil {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			i := int(math.Round((at-float64(from.UnixMilli())/1000)/step.Seconds())) - 1
			if err == nil && i >= 0 && i < n && !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 && v < 1e9 {
				put(i, v)
			}
		}
	}
	return nil
}
