package prometheus

import (
	"fmt"
	"strings"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry"
)

// methodKey identifies the metrics of a method.
type methodKey struct {
	server       bool
	target, name string
}

// collectCalls sends the metrics of calls. Methods whose names are equal once they are clean count
// together, since a scrape with the same labels twice would fail.
func collectCalls(ch chan<- prom.Metric, s telemetry.Snapshot) {
	all := make(map[methodKey]*telemetry.Method, len(s.Methods))
	for i := range s.Methods {
		m := &s.Methods[i]
		key := methodKey{m.Server, clean(m.Target), clean(m.Name)}
		if known := all[key]; known != nil {
			merge(known, m)
		} else {
			all[key] = m
		}
	}
	for key, m := range all {
		if key.server {
			collectServerMethod(ch, key.name, m)
		} else {
			collectClientMethod(ch, key.target, key.name, m)
		}
	}
}

func collectServerMethod(ch chan<- prom.Metric, name string, m *telemetry.Method) {
	for i := range m.Codes {
		s := &m.Codes[i]
		ch <- newDistribution(serverDuration, &s.Times, s.Exemplar, name, codeName(s.Code))
		ch <- serverCalls.metric(float64(s.Times.Count), name, codeName(s.Code))
	}
	ch <- serverRefused.metric(float64(m.Refused), name)
	ch <- serverRetried.metric(float64(m.Retried), name)
	ch <- serverReplayed.metric(float64(m.Replayed), name)
	ch <- serverRequests.metric(float64(m.RequestBytes), name)
	ch <- serverReplies.metric(float64(m.ReplyBytes), name)
	stage := func(stage string, took time.Duration) { ch <- serverStages.metric(took.Seconds(), name, stage) }
	stage("queue", m.Queue)
	stage("decode", m.Decode)
	stage("handle", m.Handle)
	stage("encode", m.Encode)
}

func collectClientMethod(ch chan<- prom.Metric, target, name string, m *telemetry.Method) {
	for i := range m.Codes {
		s := &m.Codes[i]
		ch <- newDistribution(clientDuration, &s.Times, s.Exemplar, target, name, codeName(s.Code))
		ch <- clientCalls.metric(float64(s.Times.Count), target, name, codeName(s.Code))
	}
	ch <- clientRetried.metric(float64(m.Retried), target, name)
}

// merge adds o to m.
func merge(m, o *telemetry.Method) {
	for i := range o.Codes {
		mergeSeries(m, &o.Codes[i])
	}
	m.Retried += o.Retried
	m.Refused += o.Refused
	m.Replayed += o.Replayed
	m.RequestBytes += o.RequestBytes
	m.ReplyBytes += o.ReplyBytes
	m.Queue += o.Queue
	m.Decode += o.Decode
	m.Handle += o.Handle
	m.Encode += o.Encode
}

func mergeSeries(m *telemetry.Method, o *telemetry.Series) {
	for i := range m.Codes {
		s := &m.Codes[i]
		if s.Code != o.Code {
			continue
		}
		s.Times.Add(&o.Times)
		if s.Exemplar == nil || o.Exemplar != nil && o.Exemplar.Time.After(s.Exemplar.Time) {
			s.Exemplar = o.Exemplar
		}
		return
	}
	m.Codes = append(m.Codes, *o)
}

// codeName returns the name of a code as gRPC and OpenTelemetry spell it: "DEADLINE_EXCEEDED".
func codeName(c anser.Code) string {
	switch {
	case c == anser.Canceled:
		return "CANCELLED"
	case c > anser.Unauthenticated:
		return fmt.Sprintf("CODE_%d", uint8(c))
	}
	return strings.ToUpper(strings.ReplaceAll(c.String(), " ", "_"))
}
